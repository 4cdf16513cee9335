// Keeps the page up to date: fetches it again and changes only what differs, so that scroll positions, the focus and opened sections stay as they are.
"use strict";

const EVERY = 2000; // milliseconds
const live = document.getElementById("live");
let tag = "";

function say(text) {
  if (live.textContent !== text) live.textContent = text;
}

function become(old, next) {
  if (old.id === "live" || old.isEqualNode(next)) return;
  if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName) return old.replaceWith(next);
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const children = [...next.childNodes];
  while (old.childNodes.length > children.length) old.lastChild.remove();
  children.forEach((child, at) => (at < old.childNodes.length ? become(old.childNodes[at], child) : old.append(child)));
}

async function look() {
  try {
    const answer = await fetch(location.pathname, { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
    const time = new Date().toLocaleTimeString();
    if (answer.status === 200) {
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.dispatchEvent(new Event("uldp:before"));
      become(document.querySelector("nav"), next.querySelector("nav"));
      become(document.querySelector("main"), next.querySelector("main"));
      document.dispatchEvent(new Event("uldp:after"));
      say(`Updated at ${time}; new results appear automatically.`);
      tag = answer.headers.get("ETag") || "";
    } else if (answer.status !== 304) {
      say(`No answer at ${time}: the page may be out of date.`);
    }
  } catch (error) {
    say("The server does not answer: the page may be out of date.");
    tag = "";
  }
  setTimeout(look, EVERY);
}

setTimeout(look, EVERY);

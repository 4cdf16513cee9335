/** Survey page, left half: makes a report in the browser, sends it to the gateway, and shows what left the device. */
import { BrowserStorage, Client, Queue } from "/client/index.js";
import { follow } from "/ask-chart.js";
import { doubt } from "/ask-doubt.js";

const at = (id) => document.getElementById(id);
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
const percent = (share) => `${Math.round(100 * share)} %`;

/** The fields of a single report (see docs/wire.md) with explanations, and the symbol that was sent. */
function fieldsOf(message, form) {
  const ends = [1, 9, 25];
  for (let i = 0; i < 2; i++) ends.push(endOfInteger(message, ends.at(-1)));
  ends.push(message.length);
  const symbol = message[message.length - 1]; // k-ary randomized response over few values: the last byte is the symbol
  const about = [
    "This is a single report.",
    "The question that it answers.",
    "A random number, so that a report counts once even if it is sent twice.",
    "The time, to the second.",
    "The group of devices; this question has only one.",
    `The answer as it was sent: “${form.symbols.symbols[symbol]}”.`,
  ];
  return [form.symbols.symbols[symbol], about.map((text, i) => [message.slice(i ? ends[i - 1] : 0, ends[i]), text])];
}

function endOfInteger(message, start) {
  let end = start;
  while (message[end] >= 0x80) end += 1;
  return end + 1;
}

/** The probability that the answer sent differs from the person's answer. */
function otherwise({ sampler, num_symbols: k }) {
  const keep = Number(BigInt(sampler.keep_weight)) / 2 ** 64;
  return 1 - keep - (1 - keep) / k;
}

function show(form, value, message) {
  const [sent, fields] = fieldsOf(message, form);
  at("mine").textContent = value;
  at("sent").textContent = sent;
  at("meaning").textContent =
    `With probability ${percent(otherwise(form))}, the answer that was sent is not yours, because your device ` +
      `randomizes answers before it sends them. Nobody who reads “${sent}” can be sure that it is your answer. ` +
      "Many answers together show how common each one is.";
  at("size").textContent = message.length;
  at("bytes").replaceChildren(...fields.map(([bytes, text], i) => row(hex(bytes), text, i === fields.length - 1)));
  at("outcome").hidden = false;
}

function row(bytes, text, isPayload) {
  const line = document.createElement("tr");
  if (isPayload) line.className = "payload";
  line.append(cell(bytes), cell(text));
  return line;
}

function cell(text) {
  const made = document.createElement("td");
  made.textContent = text;
  return made;
}

function trouble(text) {
  at("trouble").textContent = text;
  at("trouble").hidden = !text;
}

async function start() {
  const { gateway, results, question, crowd, form } = await (await fetch("/settings.json")).json();
  const client = await Client.open(form, { timeUnit: 1000 });
  const queue = new Queue({
    storage: new BrowserStorage(),
    send: async (message) => {
      const response = await fetch(`${gateway}/reports`, { method: "POST", body: message });
      if ([408, 429, 503].includes(response.status)) throw new Error("the gateway asked for a later retry");
      const answer = await response.json();
      at("received").textContent = response.ok
        ? `The gateway received it and passed it on (HTTP ${response.status}).`
        : `The gateway rejected it: ${answer.reason}.`;
    },
  });
  const flush = () => queue.flush().then(() => trouble(""), () => {
    trouble("The gateway does not answer; your device will send the same bytes again shortly.");
    setTimeout(flush, 2000);
  });
  const buttons = form.symbols.symbols.map((value) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = value;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", async () => {
      for (const other of buttons) other.disabled = true;
      button.setAttribute("aria-pressed", "true");
      const message = client.report(value);
      at("received").textContent = "";
      await queue.add(message);
      show(form, value, message);
      doubt(form, value, (held) => client.report(held));
      await flush();
    });
    return button;
  });
  at("question").textContent = question;
  at("promise").textContent =
    `This device sends one answer. With probability ${percent(otherwise(form))}, it is not the one you choose, ` +
      "because your device first replaces it at random.";
  at("crowd").textContent = crowd;
  at("crowd").hidden = !crowd;
  document.title = question;
  at("results").href = results;
  at("answers").replaceChildren(...buttons);
  follow();
  at("again").addEventListener("click", () => {
    at("outcome").hidden = true;
    for (const button of buttons) {
      button.disabled = false;
      button.setAttribute("aria-pressed", "false");
    }
    buttons[0].focus();
  });
}

start().catch((error) => trouble(`This page cannot start: ${error.message}`));

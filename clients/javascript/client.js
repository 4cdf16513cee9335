export { Client, UldpError } from "./src/client.js";
export { BrowserStorage, MemoryStorage, Queue } from "./src/queue.js";

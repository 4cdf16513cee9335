export { BrowserState } from "./src/browser-state.js";
export { Client, UldpError } from "./src/client.js";
export { BudgetSpentError, MemoClient, MemoryState } from "./src/memo-client.js";
export { BrowserStorage, MemoryStorage, Queue } from "./src/queue.js";

export { Client, UldpError } from "./src/client.js";
export { BrowserState, BudgetSpentError, MemoClient, MemoryState } from "./src/memo-client.js";
export { BrowserStorage, MemoryStorage, Queue } from "./src/queue.js";

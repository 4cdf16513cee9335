/** What single reports need: index.js without MemoClient and what belongs to it. */
export { BrowserStorage, Client, MemoryStorage, Queue, UldpError } from "./index.js";
export type { ClientForm, ClientOptions, Dimensions, MessageStorage, QueueOptions, SingleReportOptions } from "./index.js";

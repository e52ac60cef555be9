// A call of a test, and its answer.

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON; what a test reads of it is its own claim. */
  body: any; // oxlint-disable-line typescript/no-explicit-any
}

export interface CallOptions {
  token?: string | null;
  body?: unknown;
  /** Sent as it is, instead of `body`. */
  rawBody?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

// A test's call and its response.

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON, untyped: tests read the fields they expect. */
  body: any; // oxlint-disable-line typescript/no-explicit-any
}

export interface CallOptions {
  token?: string | null;
  body?: unknown;
  /** Sent unchanged, instead of `body`. */
  rawBody?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

// A test's call and its response.
import { NDJSON } from '@berth/contract/route/route.ts';

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON, an array for NDJSON, untyped: tests read the fields they expect. */
  body: any; // oxlint-disable-line typescript/no-explicit-any
}

/** Parses a response body; undefined for an empty one that is JSON. */
export function parseBody(headers: Headers, text: string): unknown {
  const lines = headers.get('content-type')?.startsWith(NDJSON) === true;
  if (headers.get('content-type') === 'application/octet-stream') return text;
  if (lines) return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  return text === '' ? undefined : JSON.parse(text);
}

export interface CallOptions {
  token?: string | null;
  body?: unknown;
  /** Sent unchanged, instead of `body`. */
  rawBody?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

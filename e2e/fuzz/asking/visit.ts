// What a request to a preview is to the fuzzer: its bytes, and who may answer it how.
import type { ErrorCode } from '@berth/contract/route/errors.ts';

/** What opens a preview, and where it is. */
export interface Door {
  /** As the `Host` header says it. */
  host: string;
  token: string;
  /** The cookie's value, where the link was opened once. */
  cookie: string | null;
}

/** The previews of a run. */
export interface PreviewDoors {
  /** `name:port` below which previews are. */
  previewHost: string;
  sandboxId: string;
  /** The app's answers have it. */
  word: string;
  /** Leads to the app. */
  app: Door;
  /** So does this; what it is opened by may be sent where apps see it. */
  spare: Door;
  revoked: Door;
  expired: Door;
  team: Door;
  /** To a port where nothing listens. */
  silent: Door;
  asleep: Door;
  gone: Door;
}

/** How an answer of the app must be; what is undefined is not looked at. */
export interface FromApp {
  status?: number;
  /** Path and query as the app is to be asked for them. */
  target?: string | undefined;
  /** SHA-256 of the body that the app is to be given. */
  digest?: string;
  /** Headers that the app is to be given as they are. */
  headers?: readonly (readonly [string, string])[];
  /** It may be broken off. */
  mayBreak?: boolean;
}

/** Who may answer one request. What is none of it is a finding. */
export interface Expected {
  method: string;
  /** Own answers that may come. */
  codes: readonly ErrorCode[];
  /** The app may answer. */
  app?: FromApp;
  /** A way to the service's page for signing in may be the answer. */
  signIn?: boolean;
  /** The host is the service's: all that it answers but faults. */
  service?: boolean;
  /** The connection may be closed without an answer. */
  nothing?: boolean;
}

export interface FuzzVisit {
  /** For findings and the tally. */
  what: string;
  /** Sent one after the other. */
  pieces: readonly Buffer[];
  /** The sender's side ends with them. */
  end?: boolean;
  /** One for each request in the bytes, in their order. */
  expected: readonly [Expected, ...Expected[]];
  /** Sent once the app has agreed to become a WebSocket, and to come back. */
  echo?: Buffer;
}

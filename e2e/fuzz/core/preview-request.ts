// A fuzzer request to a preview: its bytes, and the allowed responses with their senders.
import type { ErrorCode } from '@berth/contract/route/errors.ts';

/** Address and credentials of a preview. */
export interface PreviewEndpoint {
  /** Value of the `Host` header. */
  host: string;
  token: string;
  /** The cookie's value, once the link was opened. */
  cookie: string | null;
}

/** Previews of a run. */
export interface PreviewEndpoints {
  /** `name:port`, the base of preview hosts. */
  previewHost: string;
  sandboxId: string;
  /** Contained in the app's responses. */
  marker: string;
  /** Leads to the app. */
  app: PreviewEndpoint;
  /** Leads to the app; its credentials may be sent where apps see them. */
  spare: PreviewEndpoint;
  revoked: PreviewEndpoint;
  expired: PreviewEndpoint;
  team: PreviewEndpoint;
  /** Leads to a port without a listener. */
  silent: PreviewEndpoint;
  asleep: PreviewEndpoint;
  gone: PreviewEndpoint;
}

/** Expected response of the app; undefined fields are not checked. */
export interface AppResponse {
  status?: number;
  /** Path and query that the app must receive. */
  target?: string | undefined;
  /** SHA-256 of the body that the app must receive. */
  digest?: string;
  /** Headers that the app must receive unchanged. */
  headers?: readonly (readonly [string, string])[];
  /** True if the response may be truncated. */
  mayTruncate?: boolean;
}

/** Allowed senders of a response; any other response is a finding. */
export interface Expected {
  method: string;
  /** Allowed error codes of the service. */
  codes: readonly ErrorCode[];
  /** The app may respond. */
  app?: AppResponse;
  /** A redirect to the sign-in page is allowed. */
  signIn?: boolean;
  /** A redirect to the same preview without the token is allowed. */
  withoutToken?: boolean;
  /** The host is the service's own: any response but a fault is allowed. */
  service?: boolean;
  /** The connection may be closed without a response. */
  nothing?: boolean;
}

export interface PreviewRequest {
  /** Name for findings and the tally. */
  what: string;
  /** Sent in sequence. */
  pieces: readonly Buffer[];
  /** The sender half-closes after them. */
  end?: boolean;
  /** An entry per request in the bytes, in order. */
  expected: readonly [Expected, ...Expected[]];
  /** Sent after the app accepts the WebSocket upgrade; must be echoed. */
  echo?: Buffer;
}

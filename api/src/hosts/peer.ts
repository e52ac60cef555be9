// A host daemon as a peer of calls: address, token, connections and errors.
import http from 'node:http';
import { hostError } from '@berth/protocol/host.ts';
import type { CallSpec } from '@berth/protocol/calls/define.ts';
import type { FailureKind, Peer, Target } from '@berth/protocol/http/peer.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { HostError } from './error.ts';

/** A host keeps idle connections for much longer, so it closes none of these under a call. */
const BRIEF_IDLE_MS = 1_000;

/**
 * A connection for each call, closed by the caller: keeps uploads and retries off pooled
 * connections that the host may be closing. With `Connection: close` the host could close while the
 * caller ends its request, which then fails although it was answered.
 */
class FreshAgent extends http.Agent {
  override keepSocketAlive(): boolean {
    return false;
  }
}

export class HostPeer implements Peer {
  readonly side = 'host';
  readonly target: Target;
  readonly #url: string;
  readonly #token: () => string;
  readonly #pooled = new http.Agent({ keepAlive: true, maxFreeSockets: 16, timeout: 0 });
  /** For calls that are not repeatable: a broken connection fails them. */
  readonly #brief = new http.Agent({ keepAlive: true, maxFreeSockets: 16, timeout: BRIEF_IDLE_MS });
  readonly freshAgent = new FreshAgent({ keepAlive: true });

  constructor(url: string, token: () => string) {
    this.target = targetOf(url);
    this.#url = url;
    this.#token = token;
  }

  authorization(): string {
    return `Bearer ${this.#token()}`;
  }

  agentOf({ repeatable, upload }: CallSpec): http.Agent {
    if (repeatable === true) return this.#pooled;
    return upload === true ? this.freshAgent : this.#brief;
  }

  refusal(_call: CallSpec, _what: string, _status: number, text: string): HostError | undefined {
    const refused = hostError.safeParse(parseJson(text));
    if (!refused.success) return undefined;
    const { code, message, shortage, errno } = refused.data.error;
    return new HostError(code, message, { shortage, errno });
  }

  late(what: string, deadlineMs: number): HostError {
    return new HostError('host_timeout', `no response to ${what} at ${this.#url} within ${deadlineMs} ms`);
  }

  failure(kind: FailureKind, what: string, message: string, cause?: unknown): HostError {
    const code = kind === 'broken' ? 'host_unreachable' : 'invalid_answer';
    return new HostError(code, `${what} at ${this.#url}: ${message}`, { cause });
  }

  isFailure(error: unknown): error is HostError {
    return error instanceof HostError;
  }

  close(): void {
    this.#pooled.destroy();
    this.#brief.destroy();
    this.freshAgent.destroy();
  }
}

/** `unix:/path` or `http://address:port`. */
function targetOf(url: string): Target {
  if (url.startsWith('unix:/')) return { socketPath: url.slice('unix:'.length) };
  const parsed = URL.parse(url);
  if (parsed?.protocol !== 'http:')
    throw new TypeError(`a host's address must be unix:/path or http://address:port, not ${url}`);
  return { host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'), port: parsed.port === '' ? 80 : Number(parsed.port) };
}

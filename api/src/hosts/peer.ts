// A host daemon as a peer of calls: address, token, connections and errors.
import http from 'node:http';
import { hostError } from '@berth/protocol/host.ts';
import type { CallSpec } from '@berth/protocol/calls/define.ts';
import type { FailureKind, Peer, Target } from '@berth/protocol/http/peer.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { HostError } from './error.ts';

export class HostPeer implements Peer {
  readonly side = 'host';
  readonly target: Target;
  readonly #url: string;
  readonly #token: () => string;
  readonly #pooled = new http.Agent({ keepAlive: true, maxFreeSockets: 16, timeout: 0 });
  /** Keeps calls that are not repeatable off pooled connections that the host may be closing. */
  readonly freshAgent = new http.Agent({ keepAlive: false });

  constructor(url: string, token: () => string) {
    this.target = targetOf(url);
    this.#url = url;
    this.#token = token;
  }

  authorization(): string {
    return `Bearer ${this.#token()}`;
  }

  agentOf({ repeatable }: CallSpec): http.Agent {
    return repeatable === true ? this.#pooled : this.freshAgent;
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

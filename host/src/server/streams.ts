// The routes of the internal protocol that become raw streams of bytes: a request that asks for an
// upgrade is let in, answered with a JSON error or with 101, and then spliced with what it asked
// for. Parses what comes in; decides nothing.
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { HOST_ERRORS, vmPort, vmTerminalQuery } from '@berth/protocol/host.ts';
import { PORT_STREAM, TERMINAL_STREAM } from '@berth/protocol/guest.ts';
import { splice, type SpliceBounds } from '@berth/protocol/splice.ts';
import type { Logger } from 'pino';
import { HostError } from '../vm/host-error.ts';
import type { VmLifecycle } from '../vm/lifecycle/lifecycle.ts';
import { errorBody } from './answer.ts';
import { idIn, parse } from './route.ts';

export interface StreamCall {
  query: URLSearchParams;
  /** The VM's id in the path. */
  id: string;
  /** What follows it that is not fixed. */
  rest: string;
  /** Aborted when the caller goes away. */
  signal: AbortSignal;
}

export interface StreamRoute {
  path: RegExp;
  /** Value of the header `Upgrade`, in lower case. */
  protocol: string;
  open(call: StreamCall): Promise<Duplex>;
}

export function streamRoutesOf(lifecycle: VmLifecycle): StreamRoute[] {
  return [
    {
      path: /^\/vms\/([^/]+)\/ports\/([^/]+)$/,
      protocol: PORT_STREAM,
      open: async ({ id, rest, signal }) =>
        lifecycle.openStream(id, { port: parse(vmPort, rest, 'the port in the path') }, signal),
    },
    {
      path: /^\/vms\/([^/]+)\/terminal$/,
      protocol: TERMINAL_STREAM,
      open: async ({ id, query, signal }) => {
        const terminal = parse(vmTerminalQuery, Object.fromEntries(query), 'the query');
        return lifecycle.openStream(id, { terminal }, signal);
      },
    },
  ];
}

/**
 * Opens what was asked for and joins it with the caller's connection; resolves when both are
 * closed. Rejects before the 101, with nothing sent.
 */
export async function serveStream(
  routes: readonly StreamRoute[],
  bounds: Required<SpliceBounds>,
  request: IncomingMessage,
  caller: Duplex,
  log: Logger,
): Promise<void> {
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
  const route = routes.find((known) => request.method === 'GET' && known.path.test(path));
  const match = route?.path.exec(path) ?? null;
  if (route === undefined || match === null)
    throw new HostError('route_not_found', `no stream ${request.method ?? ''} ${path}`);

  if (request.headers.upgrade?.toLowerCase() !== route.protocol)
    throw new HostError('invalid_request', `this stream is asked for with Upgrade: ${route.protocol}`);

  const gone = new AbortController();
  caller.once('close', () => gone.abort(new DOMException('the caller went away', 'AbortError')));
  const call = { query: new URLSearchParams(query), id: idIn(match), rest: match[2] ?? '', signal: gone.signal };
  const stream = await route.open(call);
  caller.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${route.protocol}\r\n\r\n`);
  const startedMs = performance.now();
  const end = await splice(caller, stream, bounds);
  log.debug({ end, tookMs: Math.round(performance.now() - startedMs) }, 'a stream');
}

/** Answers an upgrade that is refused, and closes. */
export function refuseStream(caller: Duplex, error: unknown, log: Logger): void {
  if (caller.destroyed) {
    log.debug({ err: error }, 'the caller went away');
    return;
  }
  const body = errorBody(error, log);
  const text = JSON.stringify(body);
  const status = HOST_ERRORS[body.error.code];
  caller.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
    () => caller.destroy(),
  );
}

// The HTTP server of a control plane: all its entry points.
import type { FastifyInstance } from 'fastify';
import { webConsole } from '../console/console.ts';
import type { KeepAliveTimes } from '../http/answers/keep-alive.ts';
import { buildApp } from '../http/app.ts';
import { authEndpoints } from '../http/auth-endpoints.ts';
import { contractRoutes } from '../http/contract-routes.ts';
import { fileLinks } from '../http/file-links.ts';
import { formParser } from '../http/requests/body.ts';
import { paymentEvents } from '../http/payment-events.ts';
import { sandboxConnections } from '../http/sandbox-connections.ts';
import { mcp } from '../mcp/endpoint.ts';
import { pages } from '../pages/pages.ts';
import type { PreviewBounds } from '../preview/bounds.ts';
import { PreviewGate } from '../preview/gate.ts';
import { reference } from '../reference/reference.ts';
import type { Services } from './control-plane.ts';

/** Each defaults to the contract's value. */
export interface ServerBounds {
  /** Delays of a long call's headers and spaces. */
  keepAlive?: KeepAliveTimes | undefined;
  /** Interval of pings on an open WebSocket. */
  pingEveryMs?: number | undefined;
  /** Time for a body to arrive after its head. */
  bodyArrivesMs?: number | undefined;
  previews?: Partial<PreviewBounds> | undefined;
}

/** The server, not yet listening. */
export async function openServer(
  { context, signIn, calls, previewAccess }: Services,
  { keepAlive, pingEveryMs, bodyArrivesMs, previews }: ServerBounds = {},
): Promise<FastifyInstance> {
  const { log, settings } = context;
  const { inFlight } = calls;
  const parseForms = formParser(inFlight);
  return await buildApp({
    log,
    settings,
    bodyArrivesMs,
    inFlight,
    entryPoints: [
      new PreviewGate({ context, accessCache: previewAccess, failures: calls.failures, bounds: previews }),
      contractRoutes(calls, { keepAlive }),
      fileLinks(calls),
      mcp(calls, keepAlive),
      authEndpoints({ context, signIn, parseForms }),
      reference(settings.publicUrl),
      webConsole(settings),
      paymentEvents(context, inFlight),
      pages({ context, signIn, parseForms }),
      sandboxConnections(calls, { pingEveryMs }),
    ],
  });
}

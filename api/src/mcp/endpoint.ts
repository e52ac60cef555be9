// The MCP endpoint over HTTP. A request is admitted and counted once, like a call of a route,
// before its body is read.
import {
  DEFAULT_TOOLSETS,
  MCP_BODY_BYTES,
  MCP_TOOLSETS,
  mcpEndpoint,
  type McpToolset,
} from '@berth/contract/mcp/endpoint.ts';
import { EXEC_KEEPALIVE_MS } from '@berth/contract/route/limits.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { admit } from '../call/admission.ts';
import type { HeldBytes } from '../call/bytes-in-flight.ts';
import type { CallControl } from '../call/control.ts';
import { usableRoutes, type UsableRoutes } from '../call/usable-routes.ts';
import { CodedError } from '../rules/coded-error.ts';
import { sendFailure } from '../http/answers/errors.ts';
import { KeepAlive, type KeepAliveTimes } from '../http/answers/keep-alive.ts';
import { callOf, releaseWhenSent } from '../http/contract-routes.ts';
import type { EntryPoint } from '../http/entry-point.ts';
import { hasJsonBody, jsonParser, readBody, type ParseBody } from '../http/requests/body.ts';
import type { McpResponse, OfferedTools } from './protocol.ts';
import { requireLittleStructure } from './structure.ts';
import { bindTools, callTool, type BoundTool, type ToolCaller } from './tool-call.ts';

export function mcp(control: CallControl, keepAlive: KeepAliveTimes = EXEC_KEEPALIVE_MS): EntryPoint {
  const tools = [...bindTools(control).values()];
  return {
    register: (app) => {
      const parseJson = jsonParser(app);
      app.route({
        method: mcpEndpoint.method,
        url: mcpEndpoint.path,
        onRequest: async (request, reply) => {
          const kept = new KeepAlive(reply, 200, keepAlive);
          try {
            return await serve({ control, tools, parseJson, kept }, request, reply);
          } catch (error) {
            return sendFailure(error, request, reply);
          }
        },
        handler: () => Promise.reject(new Error("the endpoint reached Fastify's handler")),
      });
    },
  };
}

interface EndpointParts {
  control: CallControl;
  tools: readonly BoundTool[];
  parseJson: ParseBody;
  kept: KeepAlive;
}

async function serve(parts: EndpointParts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { control, parseJson, kept } = parts;
  requireOrigin(request, control.context.settings.publicUrl);
  const headers: Record<string, string> = {};
  const caller = callOf(request, reply, request.headers.authorization, () => undefined);
  const { actor, orgId } = await admit(control, mcpEndpoint, caller, headers);
  void reply.headers(headers);
  const held = control.inFlight.open({ orgId, address: request.ip });
  let body: unknown;
  try {
    if (hasJsonBody(request)) {
      const json = await readBody(request.raw, MCP_BODY_BYTES, held);
      requireLittleStructure(json);
      body = await parseJson(request, json);
    }
  } finally {
    releaseWhenSent(reply, held);
  }
  // Otherwise one request would make any number of calls for one unit of the rate limit.
  if (Array.isArray(body)) throw new CodedError('invalid_request', 'a batch of messages is not accepted; send one');
  const asked = toolsetsOf(request);
  const allowed = await usableRoutes(control, actor);
  const usable = parts.tools.filter(({ tool }) => asked.has(tool.toolset) && allowed.has(tool.route));
  const explain = (name: string): string => explainMissing(name, { all: parts.tools, usable, allowed });
  const offered = offer(control, { usable, explain }, caller, {
    started: () => kept.start(headers),
    kept: (response) => releaseWhenSent(reply, response),
  });
  // The library takes 30 MiB of memory: not before the first request.
  const { respondMcp } = await import('./protocol.ts');
  const response = await respondMcp(webRequest(request), body, offered);
  return send(response, reply, kept);
}

interface CallEvents {
  /** Called before a tool that may take minutes. */
  started: () => void;
  /** Called with the bytes that the response of a tool keeps. */
  kept: (held: HeldBytes) => void;
}

/** The tools, each as a call of its route. */
function offer(
  control: CallControl,
  { usable, explain }: { usable: readonly BoundTool[]; explain: OfferedTools['explain'] },
  caller: ToolCaller,
  { started, kept }: CallEvents,
): OfferedTools {
  return {
    list: usable.map(({ listed }) => listed),
    explain,
    call: (name, given) => {
      const tool = usable.find(({ tool: { name: known } }) => known === name);
      if (tool?.bound.route.keepsAlive === true) started();
      return tool === undefined ? undefined : callTool(control, tool, given, caller, kept);
    },
  };
}

/** Why a tool is not offered, with the remedy. */
function explainMissing(
  name: string,
  { all, usable, allowed }: { all: readonly BoundTool[]; usable: readonly BoundTool[]; allowed: UsableRoutes },
): string {
  const known = all.find(({ tool }) => tool.name === name)?.tool;
  const offered = `offered here: ${usable.map(({ tool }) => tool.name).join(', ') || 'none'}`;
  if (known === undefined) return `there is no tool ${JSON.stringify(name.slice(0, 60))}; ${offered}`;
  if (!allowed.has(known.route)) return `cannot use ${name}: ${allowed.explain(known.route)}; ${offered}`;
  return `the tool ${name} is in another toolset: add ?toolsets=${known.toolset} to the URL; ${offered}`;
}

/** A browser page of another origin must not use a credential that the browser holds. */
function requireOrigin({ headers: { origin } }: FastifyRequest, publicUrl: string): void {
  if (origin === undefined || origin === new URL(publicUrl).origin) return;
  throw new CodedError('origin_not_allowed', "the header Origin must be absent or the service's own");
}

function toolsetsOf({ query }: FastifyRequest): ReadonlySet<McpToolset> {
  const { toolsets, ...others } = query as Record<string, unknown>;
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined)
    throw new CodedError('invalid_request', `query.${unknown.slice(0, 60)}: unknown field; allowed: toolsets`);
  if (toolsets === undefined) return new Set(DEFAULT_TOOLSETS);
  const names = typeof toolsets === 'string' ? toolsets.split(',') : [];
  const allowed: readonly string[] = MCP_TOOLSETS;
  if (names.length === 0 || names.some((name) => !allowed.includes(name)))
    throw new CodedError('invalid_request', `query.toolsets must be a list of ${allowed.join(', ')}, with commas`);
  return new Set([...DEFAULT_TOOLSETS, ...(names as McpToolset[])]);
}

/** As the library reads it: the headers alone, with both types accepted as older revisions want. */
function webRequest({ raw }: FastifyRequest): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(raw.headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  headers.delete('authorization');
  headers.set('accept', 'application/json, text/event-stream');
  return new Request('http://localhost/v1/mcp', { method: 'POST', headers });
}

function send({ status, text }: McpResponse, reply: FastifyReply, kept: KeepAlive): FastifyReply {
  if (kept.endWith(() => text)) return reply;
  void reply.code(status);
  if (text === '') return reply.send();
  return reply.header('content-type', 'application/json; charset=utf-8').send(text);
}

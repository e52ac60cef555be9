// Runs a tool: a call of its route. Coded errors become tool errors, which the model reads.
import {
  argumentsOf,
  IDEMPOTENCY_ARGUMENT,
  idempotencyArgument,
  outputOf,
  WAIT_ARGUMENT,
  waitSeconds,
  type ToolArguments,
} from '@berth/contract/mcp/arguments.ts';
import type { McpTool } from '@berth/contract/mcp/tool.ts';
import { MCP_TOOLS } from '@berth/contract/mcp/tools.ts';
import type { ErrorEnvelope } from '@berth/contract/route/errors.ts';
import type { CallToolResult, Tool } from '@modelcontextprotocol/server';
import type { BoundAnswer } from '../call/bind.ts';
import { callRoute, type RouteCall } from '../call/call-route.ts';
import type { CallControl } from '../call/control.ts';
import type { HeldBytes } from '../call/bytes-in-flight.ts';
import { envelope, failureResponse } from '../call/failure.ts';
import { parseWith, type NameField } from '../call/validation.ts';
import { CodedError } from '../rules/coded-error.ts';

/** A tool with its route's handler. */
export interface BoundTool {
  tool: McpTool;
  bound: BoundAnswer;
  arguments: ToolArguments;
  /** As listed to clients. */
  listed: Tool;
}

/** The request that calls tools. */
export type ToolCaller = Pick<RouteCall, 'credential' | 'address' | 'requestId' | 'log' | 'signal'>;

type Properties = Readonly<Record<string, { type?: unknown }>>;

/** Every tool of the contract. Throws if a tool's route has no handler. */
export function bindTools({ routes }: Pick<CallControl, 'routes'>): ReadonlyMap<string, BoundTool> {
  const answers = new Map(routes.flatMap((bound) => ('answer' in bound ? [[bound.route.name, bound] as const] : [])));
  return new Map(
    MCP_TOOLS.map((tool) => {
      const bound = answers.get(tool.route.name);
      if (bound === undefined) throw new Error(`the tool ${tool.name} names a route without a handler`);
      const described = argumentsOf(tool.route);
      return [tool.name, { tool, bound, arguments: described, listed: listedTool(tool, described) }];
    }),
  );
}

function listedTool({ name, title, description, route, hints }: McpTool, { schema }: ToolArguments): Tool {
  return {
    name,
    title,
    description,
    inputSchema: schema as Tool['inputSchema'],
    outputSchema: outputOf(route),
    annotations: {
      title,
      readOnlyHint: hints.readOnly === true,
      destructiveHint: hints.destructive === true,
      idempotentHint: hints.idempotent === true,
      openWorldHint: hints.openWorld === true,
    },
  };
}

/**
 * `structuredContent` is the route's response body. `kept` receives the bytes that it keeps, to
 * release once it is sent. Never rejects.
 */
export async function callTool(
  control: CallControl,
  { bound, arguments: { places, schema } }: BoundTool,
  given: Readonly<Record<string, unknown>>,
  caller: ToolCaller,
  kept: (held: HeldBytes) => void,
): Promise<CallToolResult> {
  const properties = schema['properties'] as Properties;
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(properties, name));
  if (unknown.length > 0) {
    const allowed = Object.keys(properties).join(', ');
    const message = `unknown argument ${JSON.stringify(unknown[0]?.slice(0, 60))}; allowed: ${allowed}`;
    return failed(envelope('invalid_request', message));
  }
  const parts = partsOf(given, places, properties);
  const nameOf: NameField = (place, steps) => argumentName(place, steps, places);
  try {
    refuseWrongTypes(bound, given, parts.params, nameOf);
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    return failed(failureResponse(error).body);
  }
  const response = await callRoute(control, bound, {
    ...caller,
    get signal() {
      return caller.signal;
    },
    counted: true,
    input: {
      params: parts.params as Record<string, string>,
      query: parts.query,
      header: (name) => headerOf(name, given),
      body: () => parts.body,
      nameOf,
    },
  });
  if (response.held !== undefined) kept(response.held);
  const text = JSON.stringify(response.body);
  const body = JSON.parse(text) as Record<string, unknown>;
  if (response.status >= 400) return failed(body as unknown as ErrorEnvelope);
  return { content: [{ type: 'text', text }], structuredContent: body };
}

/**
 * The error is in `_meta` too, not in `structuredContent`: clients compare that with the output
 * schema.
 */
function failed({ error }: ErrorEnvelope): CallToolResult {
  return { isError: true, content: [{ type: 'text', text: `${error.code}: ${error.message}` }], _meta: { error } };
}

/** Queries of a URL are text; a number or boolean becomes it where the schema allows one. */
function partsOf(
  given: Readonly<Record<string, unknown>>,
  places: ToolArguments['places'],
  properties: Properties,
): Record<'params' | 'query' | 'body', Record<string, unknown>> {
  const parts = { params: {}, query: {}, body: {} } as ReturnType<typeof partsOf>;
  for (const [name, value] of Object.entries(given)) {
    const place = places.get(name);
    if (place === undefined) continue;
    const isScalar = typeof value === 'number' || typeof value === 'boolean';
    const isText = place.part === 'query' && isScalar && properties[name]?.type !== 'string';
    parts[place.part][place.field] = isText ? String(value) : value;
  }
  return parts;
}

/** Checks ids, which the access check takes as text, and arguments that become headers. */
function refuseWrongTypes(
  { route }: BoundAnswer,
  given: Readonly<Record<string, unknown>>,
  params: unknown,
  nameOf: NameField,
): void {
  if (route.request.params !== undefined) parseWith(route.request.params, params, 'path', nameOf);
  for (const [name, schema] of [
    [IDEMPOTENCY_ARGUMENT, idempotencyArgument],
    [WAIT_ARGUMENT, waitSeconds],
  ] as const)
    if (given[name] !== undefined) parseWith(schema, given[name], 'query', () => name);
}

function headerOf(name: string, given: Readonly<Record<string, unknown>>): string[] {
  const wait = given[WAIT_ARGUMENT];
  if (name === 'prefer' && wait !== undefined) return [`wait=${Number(wait)}`];
  const key = given[IDEMPOTENCY_ARGUMENT];
  return name === 'idempotency-key' && typeof key === 'string' ? [key] : [];
}

function argumentName(
  place: 'body' | 'query' | 'path',
  [field, ...rest]: readonly string[],
  places: ToolArguments['places'],
): string {
  const part = place === 'path' ? 'params' : place;
  const name = [...places].find(([, to]) => to.part === part && to.field === field)?.[0] ?? field;
  return name === undefined ? 'the arguments' : [name, ...rest].join('.');
}

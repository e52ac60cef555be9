// The MCP endpoint: one path, stateless, with JSON responses. Its tools are routes (tools.ts).
import type { Route } from '../route/route.ts';
import { z } from 'zod';

/** Sets of tools; the query `toolsets` adds sets, separated by commas. */
export const MCP_TOOLSETS = ['agent_sessions', 'sandboxes'] as const;
export type McpToolset = (typeof MCP_TOOLSETS)[number];

/** Offered whatever the query. */
export const DEFAULT_TOOLSETS: readonly McpToolset[] = ['agent_sessions'];

/** Maximum body of a request: the longest message of an agent session, each character escaped. */
export const MCP_BODY_BYTES = 1_048_576;

/** Maximum of a body outside of its strings: room for some thousand values, ten times the most. */
export const MCP_STRUCTURE_BYTES = 8_192;

/**
 * Admission of a request to the endpoint: any kind of token. The route of a tool decides about its
 * permission. Not one of the contract's routes: its bodies are JSON-RPC.
 */
export const mcpEndpoint = {
  name: 'mcp',
  summary: 'Serves the tools of the Model Context Protocol',
  method: 'POST',
  path: '/v1/mcp',
  auth: ['session', 'api_key', 'agent_token'],
  permission: null,
  request: {},
  bodyBytes: MCP_BODY_BYTES,
  response: { status: 200, body: z.unknown() },
  errors: ['origin_not_allowed'],
  activity: null,
  published: false,
} as const satisfies Route;

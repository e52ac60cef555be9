// The MCP server of one request: lists and calls tools. The library speaks the protocol; no text of
// a thrown error reaches the client.
import {
  createMcpHandler,
  isLegacyRequest,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  SUPPORTED_PROTOCOL_VERSIONS,
  UnsupportedProtocolVersionError,
  WebStandardStreamableHTTPServerTransport,
  type CallToolResult,
  type Tool,
} from '@modelcontextprotocol/server';

/** Tools that the caller may use. */
export interface OfferedTools {
  list: readonly Tool[];
  /** Undefined for a tool that is not offered. */
  call(name: string, given: Readonly<Record<string, unknown>>): Promise<CallToolResult> | undefined;
  /** Why a tool is not offered. */
  explain(name: string): string;
}

/** JSON, or an empty text. */
export interface McpResponse {
  status: number;
  text: string;
}

/** Revisions of the protocol that the library serves, the newest first. */
const REVISIONS = ['2026-07-28', ...SUPPORTED_PROTOCOL_VERSIONS];

/** Start of a response with an invalid message as the validator reports it. */
const FAULTS = /^\{"jsonrpc":"2\.0","id":.{1,1000}?,"error":\{"code":-3260[23],"message":"[^"\\]{0,60}\[\\n/;

const INFO = { name: 'berth', title: 'Berth', version: '0.1.0' };
const INSTRUCTIONS =
  'Tools of a service with sandboxes, isolated Linux VMs, each with a coding agent. Start an agent session in a ' +
  'sandbox, send it a message, poll the session until its turn has ended, and read the replies. If needsYou is true, ' +
  'let the user decide about the approval.';

/** Responds to a POST whose body is parsed. The response is JSON, never a stream. */
export async function respondMcp(request: Request, parsedBody: unknown, tools: OfferedTools): Promise<McpResponse> {
  const unsupported = unsupportedRevision(request, parsedBody);
  if (unsupported !== null) return unsupported;
  const factory = (): Server => newServer(tools);
  if (!(await isLegacyRequest(request, parsedBody))) {
    // A stream would need a message before the result, which no handler here sends.
    const handler = createMcpHandler(factory, { legacy: 'reject', maxSubscriptions: 0 });
    try {
      return await readable(await handler.fetch(request, { parsedBody }));
    } finally {
      await handler.close();
    }
  }
  const server = factory();
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await readable(await transport.handleRequest(request, { parsedBody }));
  } finally {
    await server.close();
  }
}

/**
 * Reads a response. The library reports faults of a message as the JSON of a validator, partly as
 * an internal error; names them as errors of other faults do.
 */
async function readable(response: Response): Promise<McpResponse> {
  const { status } = response;
  const text = await response.text();
  if (!FAULTS.test(text)) return { status, text };
  const { id, error } = JSON.parse(text) as { id: unknown; error: { message: string } };
  const issues = issuesIn(error.message);
  if (issues === null) return { status, text };
  const message = issues.map((issue) => `${(issue.path ?? []).join('.')}: ${issue.message}`).join('; ');
  return { status, text: errorText(id, { code: ProtocolErrorCode.InvalidParams, message }) };
}

function errorText(id: unknown, error: { code: number; message: string; data?: unknown }): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error });
}

interface Issue {
  path?: PropertyKey[];
  message?: string;
}

function issuesIn(message: string): Issue[] | null {
  try {
    const issues: unknown = JSON.parse(message.slice(message.indexOf('[\n')));
    return Array.isArray(issues) ? (issues as Issue[]) : null;
  } catch {
    return null;
  }
}

/**
 * The refusal of a header with an unknown revision. If the message names its revision too, the
 * library refuses it.
 */
function unsupportedRevision({ headers }: Request, parsedBody: unknown): McpResponse | null {
  const requested = headers.get('mcp-protocol-version');
  if (requested === null || REVISIONS.includes(requested)) return null;
  const { id = null, params } = (parsedBody ?? {}) as { id?: unknown; params?: { _meta?: object | null } | null };
  if (Object.hasOwn(params?._meta ?? {}, PROTOCOL_VERSION_META_KEY)) return null;
  const { code, data } = new UnsupportedProtocolVersionError({ supported: REVISIONS, requested });
  const message = `the header MCP-Protocol-Version must be one of ${REVISIONS.join(', ')}`;
  return { status: 400, text: errorText(id, { code, message, data }) };
}

function newServer(tools: OfferedTools): Server {
  const server = new Server(INFO, { capabilities: { tools: {} }, instructions: INSTRUCTIONS });
  server.setRequestHandler('tools/list', () => ({ tools: [...tools.list] }));
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: given = {} } }) => {
    const result = tools.call(name, given);
    if (result === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, tools.explain(name));
    return await result;
  });
  return server;
}

// The MCP server of one request: lists and calls tools. The library speaks the protocol; no text of
// a thrown error reaches the client.
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  WebStandardStreamableHTTPServerTransport,
  type CallToolResult,
  type Tool,
} from '@modelcontextprotocol/server';

/** Tools that the caller may use. */
export interface OfferedTools {
  list: readonly Tool[];
  /** Undefined for a tool that is not offered. */
  call(name: string, given: Readonly<Record<string, unknown>>): Promise<CallToolResult> | undefined;
}

const INFO = { name: 'berth', title: 'Berth', version: '0.1.0' };
const INSTRUCTIONS =
  'Tools of a service with sandboxes, isolated Linux VMs, each with a coding agent. Start an agent session in a ' +
  'sandbox, send it a message, poll the session until its turn has ended, and read the replies. If needsYou is true, ' +
  'let the user decide about the approval.';

/** Responds to a POST whose body is parsed. The response is JSON, never a stream. */
export async function respondMcp(request: Request, parsedBody: unknown, tools: OfferedTools): Promise<Response> {
  const factory = (): Server => newServer(tools);
  if (!(await isLegacyRequest(request, parsedBody))) {
    // A stream would need a message before the result, which no handler here sends.
    const handler = createMcpHandler(factory, { legacy: 'reject', maxSubscriptions: 0 });
    try {
      return await handler.fetch(request, { parsedBody });
    } finally {
      await handler.close();
    }
  }
  const server = factory();
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await transport.handleRequest(request, { parsedBody });
  } finally {
    await server.close();
  }
}

function newServer(tools: OfferedTools): Server {
  const server = new Server(INFO, { capabilities: { tools: {} }, instructions: INSTRUCTIONS });
  server.setRequestHandler('tools/list', () => ({ tools: [...tools.list] }));
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: given = {} } }) => {
    const result = tools.call(name, given);
    if (result === undefined) {
      const offered = tools.list.map((tool) => tool.name).join(', ') || 'none';
      const message = `no tool ${JSON.stringify(name.slice(0, 60))} for this credential and toolsets: ${offered}`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
    }
    return await result;
  });
  return server;
}

// A proxy that adds a bearer token, for MCP clients that send none.
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface BearerProxy {
  /** URL of the MCP endpoint behind the proxy. */
  url: string;
  close(): Promise<void>;
}

/** @param target the endpoint and the token, read for each request */
export async function startBearerProxy(target: () => { url: string; token: string }): Promise<BearerProxy> {
  const server = createServer((incoming, outgoing) => {
    const { url, token } = target();
    const { method, headers } = incoming;
    const forwarded = request(url, { method, headers: { ...headers, authorization: `Bearer ${token}` } }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.once('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}/v1/mcp`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

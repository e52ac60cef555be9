// `npm run console:dev`: serves the sources of the web console with hot reload, and passes other
// requests on to a running service.
import { createServer, type ViteDevServer } from 'vite';
import { viteConfig } from './config.ts';

const DEFAULT_SERVICE = 'http://127.0.0.1:4800';
const DEFAULT_PORT = 5_173;

/** Starts the server, which listens on the service's host name, so that its cookies fit. */
export async function startDevelopment(service: string, port: number): Promise<ViteDevServer> {
  const server = await createServer({
    ...viteConfig(),
    server: {
      host: new URL(service).hostname,
      port,
      proxy: { '^/(?!console(?:/|$|\\?))': { target: service, ws: true } },
    },
  });
  return await server.listen();
}

if (import.meta.main) {
  const service = process.env['BERTH_URL'] ?? DEFAULT_SERVICE;
  const server = await startDevelopment(service, DEFAULT_PORT);
  console.log(`The console of ${service} with hot reload: ${server.resolvedUrls?.local[0] ?? ''}`);
}

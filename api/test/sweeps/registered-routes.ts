// Routes of a server as the framework registered them, independent of our own lists.
import { subscribe } from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';

interface RegisteredRoute {
  method: string;
  /** Parameters as `:name`. */
  path: string;
}

/** Records every route of servers built later in this process; call it first. */
export function noteRegisteredRoutes(): readonly RegisteredRoute[] {
  const noted: RegisteredRoute[] = [];
  subscribe('fastify.initialization', (message) => {
    const { fastify: app } = message as { fastify: FastifyInstance };
    app.addHook('onRoute', ({ method, url }) => {
      for (const name of [method].flat()) noted.push({ method: name, path: url });
    });
  });
  return noted;
}

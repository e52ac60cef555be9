// What a server was told to answer, as the framework saw it: not what a list of ours says that it
// answers.
import { subscribe } from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';

export interface RegisteredRoute {
  method: string;
  /** Parameters as `:name`. */
  path: string;
}

/** Notes every route of every server that is built in this process from now on; call it before. */
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

// API reference: the published OpenAPI document and a page that renders it. The page loads nothing
// from other sites.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { publishedDocument } from '@berth/contract/document/openapi.ts';
import type { FastifyInstance } from 'fastify';
import type { EntryPoint } from '../http/entry-point.ts';
import { html } from '../rules/html.ts';

const DOCUMENT_PATH = '/v1/openapi.json';
const RENDERER_PATH = '/docs/redoc.js';
const START_PATH = '/docs/start.js';
const STYLE_PATH = '/docs/docs.css';

/** The renderer's script creates styles, and a worker from a blob for search. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  'worker-src blob:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const FOREVER = 'public, max-age=31536000, immutable';
const BRIEFLY = 'public, max-age=300';

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 12);

/**
 * Serves the document and its page.
 * @param publicUrl public origin of the service, named in the document
 */
export function reference(publicUrl: string): EntryPoint {
  return { register: (app) => register(app, publicUrl) };
}

function register(app: FastifyInstance, publicUrl: string): void {
  // Built on first request: most processes never serve it.
  let document: string | undefined;
  app.get(DOCUMENT_PATH, (_request, reply) => {
    document ??= JSON.stringify(publishedDocument(publicUrl));
    return reply.type('application/json; charset=utf-8').header('cache-control', BRIEFLY).send(document);
  });

  const files = {
    [RENDERER_PATH]: read('vendor/redoc.standalone.js'),
    [START_PATH]: read('start.js'),
    [STYLE_PATH]: read('docs.css'),
  };
  for (const [path, text] of Object.entries(files)) {
    const type = path.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8';
    app.get(path, (_request, reply) => reply.type(type).header('cache-control', FOREVER).send(text));
  }
  const page = pageWith((path) => `${path}?v=${hashOf((files as Record<string, string>)[path] ?? '')}`);
  app.get('/docs', (_request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('cache-control', BRIEFLY)
      .header('content-security-policy', POLICY)
      .send(page),
  );
}

function pageWith(versioned: (path: string) => string): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Berth API</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${versioned(STYLE_PATH)}" />
        <script defer src="${versioned(RENDERER_PATH)}"></script>
        <script defer src="${versioned(START_PATH)}"></script>
      </head>
      <body>
        <main id="reference" data-document="${DOCUMENT_PATH}">
          <p class="waiting">
            The reference is being drawn. The document that it shows: <a href="${DOCUMENT_PATH}">${DOCUMENT_PATH}</a>
          </p>
        </main>
      </body>
    </html>`.toString();
}

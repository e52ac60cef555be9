// The direction of imports: each layer names the layers and packages that it may import, besides
// itself. The longest matching path decides which layer a file belongs to.
import type { SourceFile } from '../source/tree.ts';

/** Layers end without a slash; `node:` stands for all Node modules, `*` for any package. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  'os/src': ['node:'],
  'contract/src': ['zod'],
  'protocol/src': ['contract/src/route', 'zod'],
  'protocol/src/http': ['os/src', 'protocol/src', 'node:'],

  'api/src/rules': ['contract/src', 'protocol/src', 'tldts-icann'],
  'api/src/store': ['api/src/rules', 'api/migrations', 'contract/src', 'node:', 'kysely', 'pg'],
  'api/src/hosts': ['protocol/src', 'node:', 'zod'],
  'api/src/services': [
    ...['api/src/rules', 'api/src/store', 'api/src/hosts', 'contract/src', 'protocol/src', 'node:', 'kysely', 'pino'],
  ],
  'api/src/config': ['api/src/rules', 'api/src/services', 'contract/src', 'os/src', 'protocol/src', 'node:', 'zod'],
  'api/src/payment': ['api/src/rules', 'api/src/services', 'contract/src', 'stripe'],
  'api/src/mail': ['api/src/config', 'api/src/services', 'node:', 'nodemailer', 'pino'],
  'api/src/sign-in': [
    ...['api/src/config', 'api/src/rules', 'api/src/services', 'api/src/store', 'contract/src'],
    ...['@simplewebauthn/server', 'better-auth', 'node:', 'otpauth', 'pino', 'zod'],
  ],
  'api/src/workers': [
    ...['api/src/rules', 'api/src/services', 'api/src/store', 'api/src/hosts', 'contract/src', 'protocol/src'],
    ...['os/src', 'kysely', 'node:', 'pg', 'pino'],
  ],
  'api/src/call': ['api/src/rules', 'api/src/services', 'contract/src', 'pino', 'zod'],
  'api/src/routes': ['api/src/call', 'api/src/services', 'contract/src', 'protocol/src'],
  'api/src/console': ['api/src/http', 'api/src/rules', 'fastify', 'node:'],
  'api/src/reference': ['api/src/http', 'api/src/rules', 'contract/src', 'fastify', 'node:'],
  'api/src/http': [
    ...['api/src/call', 'api/src/rules', 'api/src/services', 'api/src/sign-in', 'contract/src', 'protocol/src'],
    ...['fastify', 'node:', 'pino', 'ws', 'zod'],
  ],
  'api/src/mcp': [
    ...['api/src/call', 'api/src/http', 'api/src/rules', 'contract/src', '@modelcontextprotocol/server', 'fastify'],
  ],
  'api/src/pages': [
    ...['api/src/http', 'api/src/rules', 'api/src/services', 'api/src/sign-in'],
    ...['contract/src', 'fastify', 'node:', 'uqr', 'zod'],
  ],
  'api/src/preview': [
    ...['api/src/call', 'api/src/http', 'api/src/hosts', 'api/src/pages', 'api/src/rules', 'api/src/services'],
    ...['contract/src', 'protocol/src', 'fastify', 'node:'],
  ],
  'api/src/control-plane': [
    ...[
      'api/src/call',
      'api/src/config',
      'api/src/hosts',
      'api/src/http',
      'api/src/mail',
      'api/src/mcp',
      'api/src/pages',
    ],
    ...[
      'api/src/console',
      'api/src/payment',
      'api/src/preview',
      'api/src/reference',
      'api/src/routes',
      'api/src/services',
    ],
    ...['api/src/sign-in', 'api/src/store', 'api/src/workers', 'fastify', 'pg', 'pino'],
  ],
  'api/src': ['api/migrations', 'contract/src', 'protocol/src', 'node:', 'pino'],
  'api/migrations': ['kysely'],

  'guest/src': ['os/src', 'protocol/src', 'node:', 'esbuild'],
  'host/src/network': ['host/src/vm', 'os/src', 'protocol/src', 'node:', 'zod'],
  'host/src': ['guest/src', 'image/src', 'os/src', 'protocol/src', 'node:', 'pino', 'zod'],
  'image/src': ['guest/src', 'os/src', 'protocol/src', 'node:', 'zod'],
  'machine/src': [
    '@berth/console',
    'contract/src',
    'host/src',
    'image/src',
    'os/src',
    'protocol/src',
    'node:',
    'pg',
    'zod',
  ],

  'sdk/src': [],
  // The SDK by its published entries alone, as any client has it.
  // A client like any other.
  'console/src': [
    ...['@berth/sdk', '@tanstack/react-query', '@tanstack/react-virtual', '@xterm/addon-fit', '@xterm/xterm'],
    ...['lucide-react', 'react', 'react-dom', 'react-router', 'uplot'],
  ],
  'console/src/rules': ['@berth/sdk'],
  'console/src/text': ['console/src/rules'],
  'console/src/ui': [
    ...['console/src/rules', 'console/src/text', '@berth/sdk', '@tanstack/react-virtual', 'lucide-react', 'react'],
  ],
  'console/src/editor': [
    ...['console/src/rules', '@codemirror/commands', '@codemirror/merge', '@codemirror/search'],
    ...['@codemirror/state', '@codemirror/view'],
  ],
  'console/build': ['os/src', 'node:', '@vitejs/plugin-react', 'vite'],
  'cli/src': ['machine/src', '@berth/sdk', 'node:', 'commander', 'string-width', 'ws', 'zod'],
};

const isInside = (folder: string, path: string): boolean => path.startsWith(`${folder}/`);

export function layerDirection(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const layer = layerOf(path);
    if (layer === undefined) return [];
    const allowed = LAYERS[layer] ?? [];
    const mayImport = `${layer} may import ${allowed.join(', ') || 'nothing'}`;
    return imports.flatMap(({ specifier, target }) => {
      const isAllowed =
        target === null
          ? specifier.startsWith('.') || allowed.includes(packageOf(specifier))
          : [layer, ...allowed].some((other) => isInside(other, target));
      return isAllowed ? [] : [`${path} imports ${target ?? specifier}: ${mayImport}`];
    });
  });
}

function layerOf(path: string): string | undefined {
  return Object.keys(LAYERS)
    .filter((layer) => isInside(layer, path))
    .sort((a, b) => b.length - a.length)[0];
}

/**
 * `@scope/name/part` belongs to `@scope/name`, `name/part` to `name`, every Node module to `node:`.
 */
function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return 'node:';
  const parts = specifier.split('/');
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
}

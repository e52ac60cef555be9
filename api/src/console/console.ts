// The web console: files that the set-up built (console/build), read into memory once. Without them
// every path below /console is 404, and / leads to the sign-in page.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { EntryPoint } from '../http/entry-point.ts';
import { CodedError } from '../rules/coded-error.ts';
import { CONSOLE_PATH } from '../rules/console-path.ts';

type Encoding = 'br' | 'gzip' | 'identity';
/** A file by its encoding; the encoded forms may be absent. */
type StoredFile = { type: string } & Partial<Record<Encoding, Buffer>>;

interface ConsoleOptions {
  /** Public origin of the service. */
  publicUrl: string;
  /** Null: no console. */
  consoleFolder: string | null;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
/** In order of preference; with the endings of the files' names. */
const ENCODINGS: readonly (readonly [Encoding, string])[] = [
  ['br', '.br'],
  ['gzip', '.gz'],
  ['identity', ''],
];
const FOREVER = 'public, max-age=31536000, immutable';

/** Scripts and styles from files only; text never becomes a script. */
function policyOf(publicUrl: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    "font-src 'self'",
    // Older Safari does not count WebSockets as 'self'.
    `connect-src 'self' ${publicUrl.replace(/^http/, 'ws')}`,
    "manifest-src 'self'",
    "frame-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

export function webConsole(options: ConsoleOptions): EntryPoint {
  return { register: (app) => register(app, options) };
}

function register(app: FastifyInstance, { publicUrl, consoleFolder }: ConsoleOptions): void {
  const page = consoleFolder === null ? undefined : storedFile(consoleFolder, 'index.html');
  const assets = consoleFolder === null ? new Map<string, StoredFile>() : readAssets(join(consoleFolder, 'assets'));
  const pageHeaders = { 'cache-control': 'no-cache', 'content-security-policy': policyOf(publicUrl) };
  const sendPage = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
    send(page, pageHeaders, request, reply);
  app.get(CONSOLE_PATH, sendPage);
  app.get(`${CONSOLE_PATH}/*`, sendPage);
  app.get<{ Params: { file: string } }>(`${CONSOLE_PATH}/assets/:file`, (request, reply) =>
    send(assets.get(request.params.file), { 'cache-control': FOREVER }, request, reply),
  );
  app.get('/', (_request, reply) => reply.redirect(page === undefined ? '/sign-in' : CONSOLE_PATH, 303));
}

function send(
  file: StoredFile | undefined,
  headers: Readonly<Record<string, string>>,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (file === undefined) throw new CodedError('route_not_found', 'the web console has no such file');
  const encoding = encodingOf(file, request.headers['accept-encoding']);
  if (encoding !== 'identity') void reply.header('content-encoding', encoding);
  return reply
    .type(file.type)
    .headers({ ...headers, vary: 'accept-encoding' })
    .send(file[encoding]);
}

/** The preferred encoding among those that the file has and the request accepts. */
function encodingOf(file: StoredFile, accepted: string | string[] = ''): Encoding {
  const names = String(accepted)
    .split(',')
    .filter((one) => !/;\s*q=0(?:\.0*)?\s*$/.test(one))
    .map((one) => (one.split(';')[0] ?? '').trim().toLowerCase());
  return ENCODINGS.find(([name]) => file[name] !== undefined && names.includes(name))?.[0] ?? 'identity';
}

function readAssets(folder: string): Map<string, StoredFile> {
  const names = readdirSync(folder).filter((name) => TYPES[extname(name)] !== undefined);
  return new Map(names.map((name) => [name, storedFile(folder, name)]));
}

function storedFile(folder: string, name: string): StoredFile {
  const forms = ENCODINGS.filter(([, ending]) => existsSync(join(folder, name + ending)));
  const contents = forms.map(([encoding, ending]) => [encoding, readFileSync(join(folder, name + ending))] as const);
  return { type: TYPES[extname(name)] ?? 'application/octet-stream', ...Object.fromEntries(contents) };
}

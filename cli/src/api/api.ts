// `berth api`: sends one request to the API with the credential of the profile.
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { BerthError } from '@berth/sdk';
import { readBounded } from '../interaction/read-bounded.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { plainLines, plainText } from '../output/plain-text.ts';
import { parseJson } from '../service/json-text.ts';
import { addressRemedy } from '../output/address-remedy.ts';
import type { Input } from '../program/command-spec.ts';
import { bodyOf, typedValue, type ApiField } from './fields.ts';

interface ApiInput {
  rawField?: [string, string][];
  field?: [string, string][];
  input?: string;
  paginate?: true;
  header?: [string, string][];
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** Methods whose fields go into the query. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);
const MOST_INPUT_BYTES = 67_108_864;
/** Longest JSON that is printed. */
const MOST_JSON_BYTES = 268_435_456;

export async function callApi(
  context: CliContext,
  { args: [typedMethod = '', path = ''], options }: Input<ApiInput>,
): Promise<void> {
  const method = typedMethod.toUpperCase();
  if (!METHODS.includes(method))
    throw new UsageError(`unknown method '${plainText(typedMethod)}': use one of ${METHODS.join(', ')}`);
  if (options.paginate === true && method !== 'GET') throw new UsageError('--paginate requires GET');
  const { rawField = [], field = [] } = options;
  const fieldCount = rawField.length + field.length;
  if (options.input !== undefined && (fieldCount > 0 || BODILESS.has(method)))
    throw new UsageError(`--input cannot be combined with ${fieldCount > 0 ? 'fields' : method}`);
  checkPath(path);
  const { url: base } = await context.connect();
  const url = urlOf(base, await filled(context, path));
  // As in gh(1), a string is sent as it is.
  const given: ApiField[] = [...rawField];
  for (const [key, value] of field) given.push([key, typedValue(await filled(context, value))]);
  if (BODILESS.has(method)) for (const [key, value] of given) url.searchParams.append(key, String(value));
  const body = await requestBody(context, options.input, BODILESS.has(method) ? [] : given);
  const headers = new Headers({ accept: 'application/json' });
  if (body !== undefined) headers.set('content-type', 'application/json');
  for (const [name, value] of options.header ?? []) headers.set(name, value);
  const init = { method, headers, ...(body === undefined ? {} : { body }) };
  const seen = new Set<string>();
  for (;;) {
    const answer = await send(context, url, init);
    const next = options.paginate === true ? nextCursor(answer) : null;
    if (next === null) return;
    if (seen.has(next)) throw new CliFailure('the service returned the same page twice');
    seen.add(next);
    url.searchParams.set('after', next);
  }
}

/** Throws a UsageError unless the request stays on the API of the service. */
function checkPath(path: string): void {
  // Encoded dots and slashes too: a proxy may decode them.
  const isOwn = /^\/(?:v1\/[^\s\\#]*|health)$/.test(path) && !/(?:^|\/)(?:\.|%2e){1,2}(?:[/?]|%2f|$)/i.test(path);
  if (isOwn) return;
  throw new UsageError(`'${plainText(path)}' is no path of the API`, {
    remedy: 'a path begins with /v1/, without a host, such as /v1/me',
  });
}

function urlOf(base: string, path: string): URL {
  checkPath(path);
  const url = new URL(base + path);
  if (url.origin === new URL(base).origin) return url;
  throw new UsageError(`'${plainText(path)}' is no path of the API`);
}

/** Replaces `{orgId}` and `{projectId}`. */
async function filled({ connect }: CliContext, text: string): Promise<string> {
  const { orgId, projectId } = await connect();
  let result = text;
  if (text.includes('{orgId}')) result = result.replaceAll('{orgId}', await orgId());
  if (text.includes('{projectId}')) result = result.replaceAll('{projectId}', await projectId());
  return result;
}

async function requestBody(
  { stdin, signal }: CliContext,
  input: string | undefined,
  fields: readonly ApiField[],
): Promise<string | Uint8Array<ArrayBuffer> | undefined> {
  if (input === undefined) return fields.length === 0 ? undefined : JSON.stringify(bodyOf(fields));
  const tooLarge = new UsageError(`the input has more than ${MOST_INPUT_BYTES} bytes`, {
    remedy: 'berth cp copies files of any size',
  });
  const bound = { bytes: MOST_INPUT_BYTES, failure: () => tooLarge };
  if (input === '-') return new Uint8Array(await readBounded(stdin, signal, bound));
  try {
    return new Uint8Array(await readBounded(createReadStream(input), signal, bound));
  } catch (error) {
    if (error === tooLarge || signal.aborted) throw error;
    throw new CliFailure(`cannot read ${plainText(input)}: ${plainText((error as Error).message)}`, { cause: error });
  }
}

/** Prints the response. Resolves with its JSON; throws a BerthError for an error of the API. */
async function send(context: CliContext, url: URL, init: RequestInit): Promise<unknown> {
  const { connect, out, signal, stdout } = context;
  const { token } = await connect();
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${await token()}`);
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, redirect: 'manual', signal });
  } catch (error) {
    if (signal.aborted) throw error;
    const { cause } = error as { cause?: unknown };
    const why = cause instanceof Error ? cause.message : (error as Error).message;
    throw new BerthError(`cannot reach ${url.origin}: ${why}`, { code: 'connection_failed', cause: error });
  }
  const { status } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    throw new CliFailure(
      `the service redirects to '${plainText(response.headers.get('location') ?? '')}': not followed`,
      { remedy: addressRemedy(undefined, false) },
    );
  }
  if (!/^application\/(?:[\w.-]+\+)?json\b/.test(response.headers.get('content-type') ?? '')) {
    if (stdout.isTTY) plainLines(await boundedText(response)).forEach((line) => out.line(line));
    else if (response.body !== null)
      for await (const chunk of Readable.fromWeb(response.body as never)) await out.bytes(chunk as Buffer);
    if (response.ok) return undefined;
    throw new BerthError(`the service responded with ${status}`, { code: 'invalid_answer', status });
  }
  const text = await boundedText(response);
  const answer = text === '' ? undefined : parseJson(text);
  if (text !== '' && answer === undefined)
    throw new BerthError('the response is not valid JSON', { code: 'invalid_answer', status });
  if (answer !== undefined) out.object(answer);
  if (response.ok) return answer;
  const { message, code } = (answer as { error?: { message?: unknown; code?: unknown } } | undefined)?.error ?? {};
  throw new BerthError(typeof message === 'string' ? message : `the service responded with ${status}`, {
    code: typeof code === 'string' ? code : 'invalid_answer',
    status,
    requestId: response.headers.get('x-request-id') ?? undefined,
    retryAfter: Number(response.headers.get('retry-after')) || undefined,
  });
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (response.body === null) return '';
  for await (const chunk of Readable.fromWeb(response.body as never) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > MOST_JSON_BYTES) throw new CliFailure(`the response has more than ${MOST_JSON_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function nextCursor(answer: unknown): string | null {
  const { nextCursor: cursor } = (answer ?? {}) as { nextCursor?: unknown };
  return typeof cursor === 'string' ? cursor : null;
}

// Reads bodies: JSON in UTF-8 only. An empty body counts as absent with any content type: many
// clients send one.
import type { IncomingMessage } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import { freeChunk } from '@berth/protocol/http/free-chunk.ts';
import { GatheredBytes } from '@berth/protocol/http/gathered-bytes.ts';
import type { Upload } from '@berth/protocol/http/serve.ts';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { BytesInFlight, HeldBytes } from '../../call/bytes-in-flight.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { bodyTooLarge, notBytes, notJson } from '../answers/errors.ts';
import { LONG_ARRIVAL } from './arrival.ts';

/** Parses a body. The JSON parser refuses unsafe field names, such as `__proto__`. */
export type ParseBody = (request: FastifyRequest, body: Buffer) => Promise<unknown>;

/** End of the engine's message where it quotes the text instead of naming a position. */
const EXCERPT = /(?:, )?(?:\.\.\.)?".*"(?:\.\.\.)? is not valid JSON$/su;
/** Memory of a request with a body, however short the body is. */
export const LEAST_BYTES = 16_384;
const BYTES_TYPE = /^application\/octet-stream\s*(?:;|$)/i;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

export function jsonParser(app: FastifyInstance): ParseBody {
  const parseSafely = app.getDefaultJsonParser('error', 'error');
  return async (request, body) => {
    if (body.byteLength === 0) return undefined;
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    } catch (error) {
      throw notUtf8(error);
    }
    return await new Promise((resolve, reject) => {
      void parseSafely(request, text, (error, value: unknown) => {
        if (error === null) resolve(value);
        else reject(refusalOf(text, error));
      });
    });
  };
}

export function notUtf8(cause: unknown): CodedError {
  return new CodedError('invalid_json', 'the body is not UTF-8', { cause });
}

/**
 * Parses bodies of the type for Fastify's own handlers. Their callers are anonymous: the bytes
 * count for the address.
 */
export function parseBodies(app: FastifyInstance, type: string, inFlight: BytesInFlight, parse: ParseBody): void {
  app.addContentTypeParser(type, async (request: FastifyRequest) => {
    const held = inFlight.open({ address: request.ip });
    try {
      return await parse(request, await readBody(request.raw, request.routeOptions.bodyLimit, held));
    } finally {
      held.release();
    }
  });
}

/** Adds the parser of form bodies to a plugin's routes. */
export type FormParser = (plugin: FastifyInstance) => void;

export function formParser(inFlight: BytesInFlight): FormParser {
  const parse: ParseBody = (_request, body) => Promise.resolve(parseQuery(body.toString('utf8')));
  return (plugin) => parseBodies(plugin, 'application/x-www-form-urlencoded', inFlight, parse);
}

/** Returns false without a body. Throws `unsupported_media_type` for a body that is not JSON. */
export function hasJsonBody({ headers }: FastifyRequest): boolean {
  const type = headers['content-type'];
  const length = headers['content-length'];
  const isAbsent = headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
  if (type === undefined && isAbsent) return false;
  if (type === undefined || !JSON_TYPE.test(type)) throw notJson(type);
  return true;
}

/** The raw body, which may arrive for as long as its reader takes it. */
export function uploadOf({ raw, headers }: FastifyRequest): Upload {
  const { 'content-type': type } = headers;
  if (type === undefined || !BYTES_TYPE.test(type)) throw notBytes(type);
  return uploadOfAnyType(raw);
}

/** The same without regard to the content type, by which browsers name the kind of file. */
export function uploadOfAnyType(raw: IncomingMessage): Upload {
  const length = raw.headers['content-length'];
  if (length === undefined)
    throw new CodedError('invalid_request', 'the header Content-Length is required: a chunked body is not accepted');
  raw.emit(LONG_ARRIVAL);
  return { bytes: Number(length), content: raw };
}

/**
 * Reads the whole body of a request that no parser of the app has consumed. A body of known length
 * is counted before it is read, another as it arrives.
 */
export async function readBody(request: IncomingMessage, limitBytes: number, held: HeldBytes): Promise<Buffer> {
  const length = declaredLength(request, limitBytes);
  held.add(Math.max(length ?? 0, LEAST_BYTES));
  return await readAll(request, limitBytes, length === undefined ? (bytes) => held.add(bytes) : () => undefined);
}

/** Undefined without a declared length. Throws for one above the limit and an aborted request. */
export function declaredLength(request: IncomingMessage, limitBytes: number): number | undefined {
  const length = request.headers['content-length'];
  if (Number(length) > limitBytes) throw bodyTooLarge(limitBytes);
  if (request.destroyed) throw new CodedError('invalid_request', 'the request was aborted');
  return length === undefined ? undefined : Number(length);
}

function readAll(request: IncomingMessage, limitBytes: number, onBytes: (bytes: number) => void): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const gathered = new GatheredBytes();
    const settle = (settled: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('error', onError);
      settled();
    };
    const onData = (chunk: Buffer): void => {
      try {
        if (gathered.length + chunk.byteLength > limitBytes) throw bodyTooLarge(limitBytes);
        onBytes(chunk.byteLength);
        gathered.add(chunk);
        freeChunk(chunk);
      } catch (error) {
        settle(() => reject(error));
      }
    };
    const onEnd = (): void => settle(() => resolve(gathered.whole()));
    const onError = (error: Error): void =>
      settle(() => reject(new CodedError('invalid_request', error.message, { cause: error })));
    request.on('data', onData).once('end', onEnd).once('error', onError);
  });
}

/** Error of a faulty text, by the engine's message without its position and excerpt. */
export function notJsonText(cause: unknown): CodedError {
  const words = cause instanceof Error ? cause.message.replace(EXCERPT, '').replace(/ at position .*$/s, '') : '';
  return new CodedError('invalid_json', `the body is not JSON: ${words}`, { cause });
}

/**
 * Explains why a body is refused: not JSON, by the engine's message without its excerpt, which may
 * hold secrets; or an unsafe field name.
 */
function refusalOf(text: string, cause: Error): CodedError {
  try {
    JSON.parse(text);
  } catch (error) {
    const words = error instanceof Error ? error.message.replace(EXCERPT, '') : '';
    return new CodedError('invalid_json', words === '' ? 'the body is not JSON' : `the body is not JSON: ${words}`, {
      cause,
    });
  }
  return new CodedError(
    'invalid_request',
    'body: the field names __proto__ and constructor.prototype are not allowed, at any depth',
    {
      cause,
    },
  );
}

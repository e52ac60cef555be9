// Reads bodies: JSON in UTF-8 only. An empty body counts as absent with any content type: many
// clients send one.
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { CodedError } from '../../rules/coded-error.ts';
import { bodyTooLarge, notJson } from '../answers/errors.ts';

/** Parses a body. Refuses field names that are unsafe to copy, such as `__proto__`. */
export type ParseJson = (request: FastifyRequest, body: Buffer) => Promise<unknown>;

/** End of the engine's message where it quotes the text instead of naming a position. */
const EXCERPT = /(?:, )?(?:\.\.\.)?".*"(?:\.\.\.)? is not valid JSON$/su;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

export function jsonParser(app: FastifyInstance): ParseJson {
  const parseSafely = app.getDefaultJsonParser('error', 'error');
  return async (request, body) => {
    if (body.byteLength === 0) return undefined;
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    } catch (error) {
      throw new CodedError('invalid_json', 'the body is not UTF-8', { cause: error });
    }
    return await new Promise((resolve, reject) => {
      void parseSafely(request, text, (error, value: unknown) => {
        if (error === null) resolve(value);
        else reject(refusalOf(text, error));
      });
    });
  };
}

/** Replaces the body parsers of the app. */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, jsonParser(app));
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

/** Reads the whole body of a request that no parser of the app has consumed. */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length']) > limitBytes) throw bodyTooLarge(limitBytes);
  if (request.destroyed) throw new CodedError('invalid_request', 'the request was aborted');
  return await readAll(request, limitBytes);
}

function readAll(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (settled: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('error', onError);
      settled();
    };
    const onData = (chunk: Buffer): void => {
      bytes += chunk.byteLength;
      if (bytes > limitBytes) settle(() => reject(bodyTooLarge(limitBytes)));
      else chunks.push(chunk);
    };
    const onEnd = (): void => settle(() => resolve(Buffer.concat(chunks, bytes)));
    const onError = (error: Error): void =>
      settle(() => reject(new CodedError('invalid_request', error.message, { cause: error })));
    request.on('data', onData).once('end', onEnd).once('error', onError);
  });
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

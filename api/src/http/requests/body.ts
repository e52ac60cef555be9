// Reads bodies: JSON in UTF-8 and nothing else. An empty body is no body, whatever its content type
// says, as many clients send one so.
import type { FastifyInstance } from 'fastify';
import { CodedError } from '../../rules/coded-error.ts';

/** The end of the engine's message where it quotes from the text instead of naming a place. */
const EXCERPT = /(?:, )?(?:\.\.\.)?".*"(?:\.\.\.)? is not valid JSON$/su;

/** Replaces the body parsers of the app. */
export function readJsonBodies(app: FastifyInstance): void {
  const parseSafely = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.byteLength === 0) {
      done(null, undefined);
      return;
    }
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    } catch (error) {
      done(new CodedError('invalid_json', 'the body is not UTF-8', { cause: error }));
      return;
    }
    void parseSafely(request, text, (error, value: unknown) => {
      done(error === null ? null : whyRefused(text, error), value);
    });
  });
}

/**
 * No JSON, in the words of the engine but without its excerpt of the body, which may hold secrets;
 * or JSON with a field name that programs which copy objects would trip over.
 */
function whyRefused(text: string, cause: Error): CodedError {
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

// Reads bodies: JSON in UTF-8 and nothing else. An empty body is no body, whatever its content type says, as many clients send one so.
import type { FastifyInstance } from 'fastify';
import { CodedError } from '../rules/coded-error.ts';

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
      if (error === null) done(null, value);
      else done(new CodedError('invalid_json', `the body is not JSON: ${reason(text)}`, { cause: error }));
    });
  });
}

/** Why the text is no JSON, in the words of the engine, which name the place. */
function reason(text: string): string {
  try {
    JSON.parse(text);
    return 'it holds the field name __proto__ or constructor.prototype, which is not allowed';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

// Sends one preview request of the fuzzer over a new connection, with a timeout, and judges the
// result: who responded, who may, and what the app received.
import { connect } from 'node:net';
import { errorEnvelope, type ErrorCode } from '@berth/contract/route/errors.ts';
import { statusOf } from '@berth/contract/route/route.ts';
import { HUNG_AFTER_MS } from '../core/client.ts';
import { APP_HEADER, APP_SENT_HEADER } from './app.ts';
import { readAnswers, type RawAnswer } from './raw-answers.ts';
import type { FuzzReport } from '../core/report.ts';
import type { Expected, AppResponse, PreviewRequest } from '../core/preview-request.ts';

const SHOWN_CHARACTERS = 700;
/** Contained in the value of every hop-by-hop header, in both directions. */
export const HOP_MARKER = 'hop-marker';

interface Exchanged {
  answers: RawAnswer[];
  rest: Buffer;
}

export class PreviewClient {
  readonly #url: string;
  readonly #marker: string;
  readonly #secrets: readonly string[];
  readonly #report: FuzzReport;
  readonly #hungAfterMs: number;

  /** @param word contained in the app's responses; @param secrets must not reach the app */
  constructor(
    url: string,
    { marker, secrets }: { marker: string; secrets: readonly string[] },
    report: FuzzReport,
    hungAfterMs = HUNG_AFTER_MS,
  ) {
    this.#url = url;
    this.#marker = marker;
    this.#secrets = secrets;
    this.#report = report;
    this.#hungAfterMs = hungAfterMs;
  }

  async sendPreview(who: string, request: PreviewRequest): Promise<void> {
    const { expected, pieces, what } = request;
    this.#report.requests += expected.length;
    const shown = (): string =>
      `${who}: ${what}: ${JSON.stringify(Buffer.concat(pieces).toString('latin1').slice(0, SHOWN_CHARACTERS))}`;
    let result: Exchanged;
    try {
      result = await exchangeBytes(this.#url, {
        ...request,
        methods: expected.map(({ method }) => method),
        hungAfterMs: this.#hungAfterMs,
      });
    } catch (error) {
      const hung = (error as Error).name === 'TimeoutError';
      this.#report.found(
        hung ? 'hung' : 'wrong',
        `${shown()}: ${hung ? `no whole answer within ${this.#hungAfterMs} ms` : String(error)}`,
      );
      return;
    }
    const { answers, rest } = result;
    for (const [index, one] of expected.entries()) {
      const answer = answers[index];
      if (answer === undefined) {
        // Requests after a response that closes the connection get none.
        const last = answers.at(-1);
        const closes =
          last !== undefined &&
          (last.headers.get('connection')?.includes('close') === true || last.status === 101 || !last.whole);
        if (one.nothing !== true && one.service !== true && !closes)
          this.#report.found('wrong', `${shown()}: closed without an answer`);
        continue;
      }
      const fault = this.#faultIn(one, answer);
      this.#report.answered(
        answer.status,
        `preview, ${what}: ${answer.status} ${this.#isFromApp(answer) ? 'of the app' : codeIn(answer)}`,
      );
      if (fault !== null) {
        const text = answer.body.toString('latin1').slice(0, SHOWN_CHARACTERS);
        const heads = [...answer.headers].map(([name, values]) => `${name}: ${values.join(' | ')}`).join('; ');
        const finding = answer.status === 500 && !this.#isFromApp(answer) ? 'fault' : 'wrong';
        this.#report.found(finding, `${shown()}: answer ${index + 1}: ${answer.status}, ${fault}: ${heads}: ${text}`);
      }
    }
    if (answers.at(-1)?.status === 101) {
      if (request.echo === undefined || !rest.equals(request.echo))
        this.#report.found('wrong', `${shown()}: ${rest.byteLength} bytes came back of a WebSocket`);
    } else if (rest.byteLength > 0 && !mayFollow(request, rest)) {
      this.#report.found(
        'wrong',
        `${shown()}: ${rest.byteLength} bytes after the last answer: ` +
          rest.toString('latin1').slice(0, SHOWN_CHARACTERS),
      );
    }
  }

  #isFromApp({ headers }: RawAnswer): boolean {
    return headers.get(APP_HEADER)?.[0] === this.#marker;
  }

  /** Fault of a response; null: none. */
  #faultIn(expected: Expected, answer: RawAnswer): string | null {
    if (this.#isFromApp(answer)) {
      return expected.app === undefined
        ? 'the app may not answer this'
        : this.#appFault(expected, expected.app, answer);
    }

    const { status, headers, body } = answer;
    const location = headers.get('location')?.[0] ?? '';
    if (status === 303 && expected.withoutToken === true && /^http:\/\/\d+-[a-z2-7]+\./.test(location))
      return this.#secrets.some((secret) => location.includes(secret)) ? 'a redirect with a token' : null;
    const own = headers.get('set-cookie');
    if (own?.some((cookie) => cookie.includes('berth_preview')) === true) return 'a cookie with an own answer';
    if (expected.service === true) return status < 500 ? null : 'a fault of the service';
    if (!answer.whole) return 'an own answer is broken off';
    if (status === 303) {
      return expected.signIn === true && /^http:\/\/[^/]+\/preview\?/.test(location)
        ? null
        : 'nobody is to be sent elsewhere';
    }
    if (headers.get('cache-control')?.[0] !== 'no-store') return 'an own answer that may be kept';
    const statuses = new Set(expected.codes.map((code) => statusOf(code)));
    if (expected.method === 'HEAD') return statuses.has(status) ? null : 'not one of the statuses that it may have';
    const text = body.toString('utf8');
    if (headers.get('content-type')?.[0]?.startsWith('text/html') === true) {
      const isOurs =
        text.includes(' · Berth</title>') &&
        headers.get('content-security-policy')?.[0]?.includes("default-src 'none'") === true;
      return isOurs && statuses.has(status) ? null : 'not one of the pages that it may have';
    }
    const code = envelopeCode(text);
    if (code === null) return 'no error envelope';
    if (statusOf(code) !== status) return `${code} with another status than its own`;
    return expected.codes.includes(code) ? null : `${code} is none of ${expected.codes.join(', ')}`;
  }

  #appFault({ method }: Expected, app: AppResponse, { status, headers, body, whole }: RawAnswer): string | null {
    const sent = headers.get(APP_SENT_HEADER)?.[0];
    if (status !== 101 && String(status) !== sent) return `the app sent ${sent}`;
    if (app.status !== undefined && status !== app.status && status !== 101)
      return `the app was told to send ${app.status}`;
    for (const [name, values] of headers) {
      if (values.some((value) => value.includes(HOP_MARKER)) || name.startsWith('x-berth-'))
        return `the header ${name} of the app is passed on`;
    }
    for (const cookie of headers.get('set-cookie') ?? []) {
      if (cookie.startsWith('berth_preview=stolen') || /domain/i.test(cookie))
        return `the cookie ${cookie} of the app is passed on`;
    }

    if (!whole) return app.mayTruncate === true ? null : 'broken off';
    if (method === 'HEAD' || status === 204 || status === 304 || status === 101) return null;
    const said = JSON.parse(body.toString('utf8')) as { head: string; digest: string };
    const head = Buffer.from(said.head, 'base64').toString('latin1');
    if (this.#secrets.some((secret) => head.includes(secret))) return `the app was given a secret: ${head}`;
    if (head.includes(HOP_MARKER) || /\r\nx-berth-(?!forwarded-(?:host|proto):)/i.test(head))
      return `the app was given what means one connection: ${head}`;
    const [given = '', target = ''] = (head.split('\r\n', 1)[0] ?? '').split(' ');
    if (given !== method) return `the app was asked with ${given}`;
    if (app.target !== undefined && target !== app.target)
      return `the app was asked for ${JSON.stringify(target)}, not ${JSON.stringify(app.target)}`;
    if (app.digest !== undefined && said.digest !== '' && said.digest !== app.digest)
      return 'the app was given another body';
    for (const [name, value] of app.headers ?? []) {
      if (!head.toLowerCase().includes(`\r\n${name}: ${value}\r\n`.toLowerCase()))
        return `the app was not given ${name}: ${value}: ${head}`;
    }
    return null;
  }
}

/** Resolves when each method has its response, or the connection is closed. */
export function exchangeBytes(
  url: string,
  {
    pieces,
    methods,
    end,
    echo,
    hungAfterMs = HUNG_AFTER_MS,
  }: Pick<PreviewRequest, 'pieces' | 'end' | 'echo'> & { methods: readonly string[]; hungAfterMs?: number },
): Promise<Exchanged> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
    const chunks: Buffer[] = [];
    let echoing = false;
    const finish = (settle: () => void): void => {
      clearTimeout(timer);
      socket.destroy();
      settle();
    };
    const timer = setTimeout(
      () =>
        finish(() =>
          reject(
            new DOMException(
              `got ${JSON.stringify(Buffer.concat(chunks).toString('latin1').slice(0, 300))}`,
              'TimeoutError',
            ),
          ),
        ),
      hungAfterMs,
    );
    const look = (closed: boolean): void => {
      try {
        const read = readAnswers(Buffer.concat(chunks), methods, closed);
        const joined = read.answers.at(-1)?.status === 101;
        if (joined && !echoing && echo !== undefined && !closed) {
          echoing = true;
          socket.write(echo);
        }
        const done = joined ? read.rest.byteLength >= (echo?.byteLength ?? 0) : read.answers.length === methods.length;
        if (done || closed) finish(() => resolve(read));
      } catch (error) {
        finish(() => reject(error instanceof Error ? error : new Error(String(error))));
      }
    };
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      look(false);
    });
    // A refusal during sending may close the connection; only the responses count.
    socket.on('error', () => undefined);
    socket.once('end', () => look(true));
    socket.once('close', () => look(true));
    const sendFrom = (index: number): void => {
      const piece = pieces[index];
      if (piece !== undefined) socket.write(piece, () => sendFrom(index + 1));
      else if (end === true) socket.end();
    };
    socket.once('connect', () => sendFrom(0));
  });
}

function envelopeCode(text: string): ErrorCode | null {
  try {
    return errorEnvelope.parse(JSON.parse(text)).error.code;
  } catch {
    return null;
  }
}

function codeIn({ body, headers }: RawAnswer): string {
  return /"code":"(\w+)"/.exec(body.toString('latin1'))?.[1] ?? headers.get('content-type')?.[0] ?? '';
}

/**
 * True if further responses may follow: bytes after an odd request form a request of their own, or
 * an unparsable one. Unparsable requests get a body, for HEAD too.
 */
function mayFollow({ end, expected }: PreviewRequest, rest: Buffer): boolean {
  if (expected.some(({ method }) => method === 'HEAD')) return true;
  return end === true && rest.toString('latin1').startsWith('HTTP/1.1 4');
}

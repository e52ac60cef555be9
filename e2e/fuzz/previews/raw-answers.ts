// Parses the bytes of a connection into HTTP responses, strictly, because the requests are odd.
// Knows nothing of the sender.

export interface RawAnswer {
  status: number;
  /** By lower-case name; repeated headers in order. */
  headers: ReadonlyMap<string, readonly string[]>;
  body: Buffer;
  /** false: the connection closed before the end. */
  whole: boolean;
}

/** Final responses to requests of these methods, and the rest. Throws for invalid HTTP. */
export function readAnswers(
  bytes: Buffer,
  methods: readonly string[],
  closed: boolean,
): { answers: RawAnswer[]; rest: Buffer } {
  const answers: RawAnswer[] = [];
  let rest = bytes;
  for (const method of methods) {
    const read = readAnswer(rest, method, closed);
    if (read === null) break;
    answers.push(read.answer);
    rest = read.rest;
    if (read.answer.status === 101) break;
  }
  return { answers, rest };
}

function readAnswer(bytes: Buffer, method: string, closed: boolean): { answer: RawAnswer; rest: Buffer } | null {
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) {
      if (closed && rest.byteLength > 0) throw new Error(`half a head: ${rest.toString('latin1').slice(0, 300)}`);
      return null;
    }
    const [first = '', ...lines] = rest.subarray(0, end).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) [^\r\n]*$/.exec(first)?.[1]);
    if (!(status >= 100)) throw new Error(`no status line: ${first.slice(0, 300)}`);
    rest = rest.subarray(end + 4);
    if (status < 200 && status !== 101) continue;
    const headers = headersOf(lines);
    const framed =
      status === 101 ? { body: Buffer.alloc(0), rest } : readBody(rest, { method, status, headers, closed });
    if (framed === null)
      return closed ? { answer: { status, headers, body: rest, whole: false }, rest: Buffer.alloc(0) } : null;

    return { answer: { status, headers, body: framed.body, whole: true }, rest: framed.rest };
  }
}

function headersOf(lines: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(.*?)[ \t]*$/s.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`no header: ${line.slice(0, 300)}`);
    const values = headers.get(name.toLowerCase()) ?? [];
    values.push(value);
    headers.set(name.toLowerCase(), values);
  }
  return headers;
}

interface Framing {
  method: string;
  status: number;
  headers: ReadonlyMap<string, readonly string[]>;
  closed: boolean;
}

/** null: incomplete. */
function readBody(bytes: Buffer, { method, status, headers, closed }: Framing): { body: Buffer; rest: Buffer } | null {
  const length = headers.get('content-length');
  const coding = headers.get('transfer-encoding');
  if (length !== undefined && (coding !== undefined || length.length !== 1))
    throw new Error('an answer with two framings');
  // A server that cannot parse a request does not know that it is HEAD: it sends a body and closes.
  if (method === 'HEAD' && (status === 400 || status === 431))
    return closed ? { body: bytes, rest: Buffer.alloc(0) } : null;
  if (method === 'HEAD' || status === 204 || status === 304) return { body: Buffer.alloc(0), rest: bytes };
  if (coding !== undefined) return readChunks(bytes);
  if (length === undefined) return closed ? { body: bytes, rest: Buffer.alloc(0) } : null;
  const wanted = Number(length[0]);
  return bytes.byteLength < wanted ? null : { body: bytes.subarray(0, wanted), rest: bytes.subarray(wanted) };
}

function readChunks(bytes: Buffer): { body: Buffer; rest: Buffer } | null {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return null;
    const size = /^[0-9a-f]+$/i.exec(bytes.toString('latin1', at, lineEnd))?.[0];
    if (size === undefined) throw new Error(`no chunk: ${bytes.toString('latin1', at, at + 100)}`);
    const begin = lineEnd + 2;
    const end = begin + Number.parseInt(size, 16);
    if (end === begin) {
      const last = bytes.indexOf('\r\n', begin);
      if (last === -1) return null;
      if (last === begin) return { body: Buffer.concat(chunks), rest: bytes.subarray(begin + 2) };
      const trailersEnd = bytes.indexOf('\r\n\r\n', begin);
      return trailersEnd === -1 ? null : { body: Buffer.concat(chunks), rest: bytes.subarray(trailersEnd + 4) };
    }
    if (bytes.byteLength < end + 2) return null;
    chunks.push(bytes.subarray(begin, end));
    at = end + 2;
  }
}

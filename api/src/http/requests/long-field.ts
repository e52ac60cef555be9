// Reads a JSON object with one text field that may be most of it. Decodes the field while the body
// arrives and keeps only its text: as JSON the body can be six times as long, and parsing it whole
// would block the process.
import type { IncomingMessage } from 'node:http';
import type { LongField } from '@berth/contract/route/route.ts';
import { freeChunk } from '@berth/protocol/http/free-chunk.ts';
import { GatheredBytes } from '@berth/protocol/http/gathered-bytes.ts';
import type { FastifyRequest } from 'fastify';
import type { HeldBytes } from '../../call/bytes-in-flight.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { bodyTooLarge } from '../answers/errors.ts';
import type { Turns } from './turns.ts';
import { declaredLength, LEAST_BYTES, notJsonText, notUtf8, type ParseBody } from './body.ts';

/** Default limit in characters of the body without the long field. */
const REST_CHARACTERS = 65_536;
/** Copies of the field in memory at once: bytes, text, and text that is not collected yet. */
export const LONG_FIELD_COPIES = 3;
/** Characters for which JSON text and its value differ, and those that JSON refuses. */
// oxlint-disable-next-line no-control-regex -- JSON allows none in a string
const ESCAPED_OR_INVALID = /[\\\u0000-\u001f]/;
/** Outside of strings JSON has no other characters. */
const NOT_STRUCTURE = /[^ \t\n\r{}[\]:,0-9.+\-Eaeflnrstu]/;

/** Parses the rest of the body, and adds the text of the long field. */
export async function readWithLongField(
  request: FastifyRequest,
  field: LongField,
  limitBytes: number,
  parse: ParseBody,
  held: HeldBytes,
  turns: Turns,
): Promise<unknown> {
  const length = declaredLength(request.raw, limitBytes) ?? limitBytes;
  held.add(Math.max(LEAST_BYTES, LONG_FIELD_COPIES * Math.min(length, field.maxBytes + restCharacters(field))));
  const reader = new LongFieldReader(field, limitBytes, Math.min(length, field.maxBytes));
  await readInto(reader, request.raw, limitBytes, turns);
  const value = await parse(request, Buffer.from(reader.rest));
  const text = reader.takeText();
  if (text !== undefined && isObject(value) && value[field.name] === '') value[field.name] = text;
  return value;
}

async function readInto(
  reader: LongFieldReader,
  request: IncomingMessage,
  limitBytes: number,
  turns: Turns,
): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decoded = (chunk?: Buffer): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch (error) {
      throw notUtf8(error);
    }
  };
  let bytes = 0;
  let mayBeJson = true;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes > limitBytes) throw bodyTooLarge(limitBytes);
      // Its length decides between 413 and 400.
      mayBeJson &&= await turns.run(() => reader.add(decoded(chunk)));
      freeChunk(chunk);
    }
  } catch (error) {
    if (error instanceof CodedError || !(error instanceof Error)) throw error;
    throw new CodedError('invalid_request', error.message, { cause: error });
  }
  if (mayBeJson) reader.add(decoded());
}

/** Place in the text: between strings, in a string of the rest, or in the long field. */
type Place = 'structure' | 'string' | 'field';

class LongFieldReader {
  readonly #field: LongField;
  readonly #limitBytes: number;
  readonly #restCharacters: number;
  readonly #expectedBytes: number;
  #place: Place = 'structure';
  #depth = 0;
  /** Start of the last string at the top level, in the rest. */
  #stringStart = 0;
  /** The value of the long field follows. */
  #expectsField = false;
  #rest = '';
  /** Incomplete escape at the end of the previous chunk. */
  #carried = '';
  #bytes = new GatheredBytes();
  #found = false;
  /** High surrogate whose second half may follow in the next chunk. */
  #half = '';
  #isWellFormed = true;

  constructor(field: LongField, limitBytes: number, expectedBytes: number) {
    this.#field = field;
    this.#limitBytes = limitBytes;
    this.#restCharacters = restCharacters(field);
    this.#expectedBytes = expectedBytes;
  }

  /** The body with an empty text in place of the long field's. */
  get rest(): string {
    return this.#rest;
  }

  /** The last text of the field, once: frees its bytes. Undefined without the field. */
  takeText(): string | undefined {
    return this.#found ? this.#bytes.takeText() : undefined;
  }

  /** Returns false if the body cannot be JSON: then its rest is not JSON either. */
  add(chunk: string): boolean {
    const text = this.#carried === '' ? chunk : this.#carried + chunk;
    this.#carried = '';
    let at = 0;
    while (at < text.length && at !== -1) {
      if (this.#place === 'structure') at = this.#readStructure(text, at);
      else at = this.#readString(text, at);
      if (this.#rest.length > this.#restCharacters) throw bodyTooLarge(this.#limitBytes);
    }
    return at !== -1;
  }

  /** Returns the place after the opening quote of a string; -1 for a character that JSON lacks. */
  #readStructure(text: string, start: number): number {
    const quote = text.indexOf('"', start);
    const end = quote === -1 ? text.length : quote;
    const part = text.slice(start, Math.min(end, start + this.#restCharacters + 1));
    const fault = part.search(NOT_STRUCTURE);
    if (fault !== -1) {
      this.#rest += part.slice(0, fault + 1);
      return -1;
    }
    for (const character of part) {
      if (character === '{' || character === '[') this.#depth += 1;
      else if (character === '}' || character === ']') this.#depth -= 1;
      else if (character === ':') this.#expectsField = this.#depth === 1 && this.#isLastString();
      else if (character === ',') this.#expectsField = false;
    }
    this.#rest += part;
    if (quote === -1) return text.length;
    this.#place = this.#expectsField && this.#depth === 1 ? 'field' : 'string';
    if (this.#place === 'field') this.#beginField();
    else this.#beginString();
    return quote + 1;
  }

  #beginString(): void {
    this.#stringStart = this.#rest.length;
    this.#rest += '"';
  }

  #beginField(): void {
    this.#found = true;
    this.#bytes = new GatheredBytes(this.#expectedBytes);
    this.#half = '';
    this.#isWellFormed = true;
  }

  /** Reads to the end of the string, or of the text. */
  #readString(text: string, start: number): number {
    const { end, closed } = endOfString(text, start);
    const part = text.slice(start, end);
    if (this.#place === 'field') this.#decode(part);
    else this.#rest += part;
    if (!closed) {
      this.#carried = text.slice(end);
      return text.length;
    }
    if (this.#place === 'field') this.#rest += this.#isWellFormed && this.#half === '' ? '""' : '"\\ud800"';
    else this.#rest += '"';
    this.#expectsField = false;
    this.#place = 'structure';
    return end + 1;
  }

  #decode(part: string): void {
    let text = this.#half + unescaped(part);
    this.#half = /^[\ud800-\udbff]$/.test(text.slice(-1)) ? text.slice(-1) : '';
    if (this.#half !== '') text = text.slice(0, -1);
    if (!text.isWellFormed()) this.#isWellFormed = false;
    const bytes = Buffer.byteLength(text);
    const { name, maxBytes, tooLong } = this.#field;
    if (this.#bytes.length + bytes > maxBytes)
      throw new CodedError(tooLong, `body.${name} exceeds the limit of ${maxBytes} bytes`);
    this.#bytes.addText(text, bytes);
  }

  /** Reports whether the last string of the rest is the field's name. */
  #isLastString(): boolean {
    try {
      return JSON.parse(this.#rest.slice(this.#stringStart)) === this.#field.name;
    } catch {
      return false;
    }
  }
}

/** Text of a part of a JSON string. Most parts of base64 and of many texts stand for themselves. */
function unescaped(part: string): string {
  if (!ESCAPED_OR_INVALID.test(part)) return part;
  try {
    return JSON.parse(`"${part}"`) as string;
  } catch (error) {
    throw notJsonText(error);
  }
}

/** The closing quote of the string, or the end of its last complete character. */
function endOfString(text: string, start: number): { end: number; closed: boolean } {
  for (let quote = text.indexOf('"', start); quote !== -1; quote = text.indexOf('"', quote + 1))
    if (!isEscaped(text, quote, start)) return { end: quote, closed: true };
  // An escape has at most six characters.
  const last = text.lastIndexOf('\\');
  const isWhole = last < Math.max(start, text.length - 5) || isEscaped(text, last, start);
  if (isWhole || last + (text[last + 1] === 'u' ? 6 : 2) <= text.length) return { end: text.length, closed: false };
  return { end: last, closed: false };
}

/** Reports whether the character follows an odd number of backslashes. */
function isEscaped(text: string, at: number, start: number): boolean {
  let first = at;
  while (first > start && text[first - 1] === '\\') first -= 1;
  return (at - first) % 2 === 1;
}

function restCharacters(field: LongField): number {
  return field.restCharacters ?? REST_CHARACTERS;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

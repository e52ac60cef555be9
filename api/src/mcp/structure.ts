// Limits the structure of a body before it is parsed. A megabyte of small values takes half a
// second of the process, a megabyte of text milliseconds.
import { MCP_STRUCTURE_BYTES } from '@berth/contract/mcp/endpoint.ts';
import { CodedError } from '../rules/coded-error.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Throws `invalid_request` if the JSON has too much outside of its strings. */
export function requireLittleStructure(json: Buffer): void {
  let outside = 0;
  let at = 0;
  while (at < json.length) {
    const quote = json.indexOf(QUOTE, at);
    const end = quote === -1 ? json.length : quote;
    outside += end - at;
    if (outside > MCP_STRUCTURE_BYTES) {
      const message = `the body has more than ${MCP_STRUCTURE_BYTES} bytes outside of strings: send fewer values`;
      throw new CodedError('invalid_request', message);
    }
    at = endOfString(json, end + 1) + 1;
  }
}

/** Index of the closing quote; the length without one. */
function endOfString(json: Buffer, start: number): number {
  let quote = json.indexOf(QUOTE, start);
  while (quote !== -1 && isEscaped(json, quote, start)) quote = json.indexOf(QUOTE, quote + 1);
  return quote === -1 ? json.length : quote;
}

/** Reports whether the byte follows an odd number of backslashes. */
function isEscaped(json: Buffer, at: number, start: number): boolean {
  let first = at;
  while (first > start && json[first - 1] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

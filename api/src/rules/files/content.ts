// Converts between a file's bytes and their representation in JSON.
import type { FileContent } from '@berth/contract/files/files.ts';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { CodedError, invalidField } from '../coded-error.ts';

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

type Encoded = Pick<FileContent, 'content' | 'encoding'>;

/**
 * Throws `invalid_request` for invalid base64 and `file_too_large` above the limit of one write.
 */
export function bytesOfContent({ content, encoding }: Encoded): Buffer {
  const bytes = bytesOf('body.content', content, encoding);
  if (bytes.length > FILE_LIMITS.writeBytes) {
    throw new CodedError(
      'file_too_large',
      `body.content: ${bytes.length} bytes exceed the limit of ${FILE_LIMITS.writeBytes} bytes for one write`,
    );
  }
  return bytes;
}

/** Throws `invalid_request` for invalid base64. */
export function bytesOf(field: string, text: string, encoding: Encoded['encoding']): Buffer {
  // Buffer ignores invalid base64 characters.
  if (encoding === 'base64' && !isBase64(text)) {
    throw invalidField(
      field,
      'is not base64: ' +
        'it must be of the standard alphabet (RFC 4648, section 4), with padding and without line breaks',
    );
  }
  return Buffer.from(text, encoding);
}

/** Reports whether the text is the only encoding of its bytes, without a copy of a long text. */
function isBase64(text: string): boolean {
  const last = text.slice(-4);
  return text.length % 4 === 0 && BASE64.test(text) && Buffer.from(last, 'base64').toString('base64') === last;
}

/**
 * UTF-8 text if that is lossless: valid UTF-8 without NUL, kept unchanged including a byte order
 * mark. base64 otherwise.
 */
export function contentOfBytes(bytes: Buffer): Encoded {
  const text = bytes.includes(0) ? null : textOf(bytes);
  return text === null
    ? { content: bytes.toString('base64'), encoding: 'base64' }
    : { content: text, encoding: 'utf8' };
}

function textOf(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

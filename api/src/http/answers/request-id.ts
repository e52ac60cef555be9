// Request ids: `x-request-id` of every response. Always generated; a caller's header is ignored.
import { randomUUID } from 'node:crypto';

export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '')}`;
}

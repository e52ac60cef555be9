// Ids of requests: `x-request-id` of every answer. Always our own; what a caller sends under that
// name is not believed.
import { randomUUID } from 'node:crypto';

export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '')}`;
}

// File links over HTTP, for pages of any origin. These paths read no token and no cookie. A guest's
// file must never become a page, script or frame of this origin: every response forbids it.
import { FILE_LINK_PATH } from '@berth/contract/files/links.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callFileLink } from '../call/file-link.ts';
import type { CallControl } from '../call/control.ts';
import { abortWhenGone } from './answers/caller-gone.ts';
import { logOf } from './answers/request-log.ts';
import { handlerBehind, sendResponse } from './contract-routes.ts';
import type { EntryPoint } from './entry-point.ts';
import { uploadOfAnyType } from './requests/body.ts';

const PATH = `${FILE_LINK_PATH}/:token`;
const NO_CONTENT = 204;

/** Without credentials: `*` excludes cookies. */
const HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Retry-After, X-Request-Id',
  'content-security-policy': "sandbox; default-src 'none'",
  'cross-origin-resource-policy': 'cross-origin',
} as const;

/**
 * No wildcard for headers: a page could send those by which programs name and open previews
 * (`PREVIEW_HEADERS`), which are served at every path.
 */
const PREFLIGHT = {
  'access-control-allow-methods': 'GET, HEAD, PUT',
  'access-control-allow-headers': 'Content-Type, If-Range, Range',
  'access-control-max-age': '7200',
} as const;

export function fileLinks(control: CallControl): EntryPoint {
  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const signal = abortWhenGone(reply);
    const isRead = request.method !== 'PUT';
    const { status, headers, body } = await callFileLink(control, {
      token: (request.params as { token: string }).token,
      method: isRead ? 'GET' : 'PUT',
      address: request.ip,
      requestId: request.id,
      log: logOf(request),
      // A range is defined for GET only (RFC 9110).
      header: (name) => (request.method === 'HEAD' ? [] : (request.raw.headersDistinct[name] ?? [])),
      upload: () => uploadOfAnyType(request.raw),
      signal,
    });
    return sendResponse(reply, { status, headers: { ...headers, ...HEADERS }, body });
  };
  return {
    register: (app) => {
      const handler = handlerBehind(PATH);
      for (const method of ['GET', 'PUT'] as const) app.route({ method, url: PATH, onRequest: serve, handler });
      app.options(PATH, (_request, reply) =>
        reply
          .code(NO_CONTENT)
          .headers({ ...HEADERS, ...PREFLIGHT })
          .send(),
      );
    },
  };
}

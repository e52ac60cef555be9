// Runs a use of a file link: like a call of downloadFile or uploadFile, except that the link, not a
// token, says who may do it. Knows no HTTP server.
// open the seal -> count -> require an open link -> take a place -> transfer -> respond
import { ERRORS, type ErrorCode } from '@berth/contract/route/errors.ts';
import type { Logger } from 'pino';
import { CodedError } from '../rules/coded-error.ts';
import { attachment } from '../rules/files/download-name.ts';
import { FILE_LINK_METHODS, requireOpenLink, termsOfLink, type FileLinkTerms } from '../services/files/links.ts';
import { downloadFile, uploadFile, type Transfer, type Upload } from '../services/files/transfers.ts';
import { answerOf, rangeIn, type RouteResponse } from './call-route.ts';
import type { CallControl } from './control.ts';
import { CallerGone, failureResponse, logFailure, toCodedError } from './failure.ts';

interface FileLinkCall {
  token: string;
  method: 'GET' | 'PUT';
  /** Network address of the caller. */
  address: string;
  requestId: string;
  log: Logger;
  /** Values of a header, by its name in lower case. */
  header(name: string): readonly string[];
  /** The body of a PUT, unread. */
  upload(): Upload;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

/** Errors whose messages are about the link and its file alone. */
const SHOWN: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'file_link_invalid',
  'file_link_expired',
  'method_not_allowed',
  'invalid_request',
  'file_path_invalid',
  'not_a_file',
  'not_a_directory',
  'file_access_denied',
  'file_not_found',
  'file_too_large',
  'file_exists',
  'file_call_unsupported',
  'file_system_error',
  'guest_disk_full',
  'range_not_satisfiable',
  'upload_stalled',
  'sandbox_busy',
  'rate_limited',
  'internal',
]);

/** Never rejects. */
export async function callFileLink(control: CallControl, call: FileLinkCall): Promise<RouteResponse> {
  try {
    return await use(control, call);
  } catch (error) {
    const coded = toCodedError(error, call.requestId);
    // The log has the real code, for the operator.
    logFailure(coded, call.log);
    const shown = shownTo(coded);
    const { headers, ...failure } = failureResponse(shown);
    return { ...failure, headers: { ...headers, ...(shown.code === 'method_not_allowed' ? allowOf(call) : {}) } };
  }
}

async function use(control: CallControl, call: FileLinkCall): Promise<RouteResponse> {
  const { context, fileLinks } = control;
  const { address, log, method, requestId, signal } = call;
  const terms = termsOf(control, call);
  fileLinks.count(terms.id);
  log.setBindings({ caller: terms.id, callerKind: 'file_link' });
  if (FILE_LINK_METHODS[terms.action] !== method) {
    const wanted = `cannot ${method} with this file link: it can only ${terms.action}`;
    throw new CodedError('method_not_allowed', `${wanted}. Use ${FILE_LINK_METHODS[terms.action]}`);
  }
  const upload = method === 'PUT' ? uploadWithin(terms, call.upload()) : undefined;
  const readmit = (): ReturnType<typeof requireOpenLink> => requireOpenLink(context, terms);
  const sandbox = await control.admissions.run(terms.id, readmit);
  const { id: sandboxId, org_id: orgId } = sandbox;
  log.setBindings({ org: orgId });
  fileLinks.countForOrg(orgId, await control.orgPlans.find(orgId));
  const leave = await fileLinks.places.enter({ orgId, sandboxId, linkId: terms.id }, signal);
  const held = control.inFlight.open({ orgId, address });
  const end = (): void => {
    held.release();
    leave();
  };
  const actor = { kind: 'file_link', id: terms.id, userId: terms.creator.userId, requestId } as const;
  const transfer: Transfer = { actor, sandbox, signal, readmit, hold: (bytes) => held.add(bytes) };
  try {
    if (upload !== undefined) {
      const { path, overwrite } = terms;
      const options = overwrite ? {} : { ifUnchanged: 'absent' };
      const body = await uploadFile(context, transfer, { path, ...options }, upload);
      end();
      return { status: 200, headers: {}, body };
    }
    const download = await downloadFile(context, { ...transfer, range: rangeIn(call) }, terms);
    download.stream.once('close', end);
    const { headers, ...answer } = answerOf(download, {});
    const disposition = attachment(terms.fileName ?? terms.path.slice(terms.path.lastIndexOf('/') + 1));
    return { status: 200, ...answer, headers: { ...headers, 'content-disposition': disposition } };
  } catch (error) {
    end();
    throw error;
  }
}

/** A forged token costs no query, but counts as a failed authentication of its address. */
function termsOf({ context, failures }: CallControl, { token, address }: FileLinkCall): FileLinkTerms {
  try {
    return termsOfLink(context, token);
  } catch (error) {
    failures.count(address);
    throw error;
  }
}

/** Throws `file_too_large` before anything of the sandbox is called. */
function uploadWithin({ maxBytes }: FileLinkTerms, upload: Upload): Upload {
  if (maxBytes === null || upload.bytes <= maxBytes) return upload;
  const message = `cannot upload ${upload.bytes} bytes: the limit of this file link is ${maxBytes} bytes`;
  throw new CodedError('file_too_large', `${message}. Send a smaller file`);
}

/**
 * The error as the holder of a link sees it: nothing about the org, its plan and its sandboxes
 * beyond the path.
 */
function shownTo(error: CodedError): CodedError {
  const { code, retryAfterSeconds, cause } = error;
  if (SHOWN.has(code) || error.cause instanceof CallerGone) return error;
  const retry = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  if (ERRORS[code].status === 429)
    return new CodedError(code, 'too many requests or transfers; retry in a moment', { ...retry, cause });
  const message = 'the sandbox of this file link is not running, or does not respond. Retry later';
  return new CodedError('file_link_unavailable', message, { ...retry, cause });
}

function allowOf({ method }: FileLinkCall): { allow: string } {
  return { allow: method === 'GET' ? 'PUT' : 'GET, HEAD' };
}

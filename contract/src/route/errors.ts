// Every error the API answers: its code, HTTP status and meaning, and the envelope. Clients decide
// on the code, never on the message.
import { z } from 'zod';

export const ERRORS = {
  invalid_json: { status: 400, meaning: 'The body is not JSON in UTF-8.' },
  invalid_request: {
    status: 400,
    meaning:
      'A parameter or field is missing, has a wrong value, or is unknown; the message names it and what is allowed.',
  },
  unknown_project: { status: 400, meaning: 'projectId names no project of this org.' },
  ephemeral_not_allowed: { status: 400, meaning: 'mode is allowed only in projects whose useCase is external.' },
  not_ephemeral: { status: 400, meaning: 'Only an ephemeral sandbox can be renewed.' },
  wake_not_possible: {
    status: 400,
    meaning: 'The sandbox is not asleep, or there is nothing to wake it from; the message says which.',
  },
  allocation_out_of_bounds: {
    status: 400,
    meaning:
      'The size asked for can never be: a disk that shrinks, or more than any host has; the message names the bound.',
  },
  file_path_invalid: {
    status: 400,
    meaning: 'No file can have this path: it is too long, or leads through a ring of links.',
  },
  not_a_file: {
    status: 400,
    meaning: 'At the path is a directory, a socket, a device or a FIFO, where a file is needed.',
  },
  not_a_directory: { status: 400, meaning: 'At the path, or at a part of it, is a file, where a directory is needed.' },
  plan_not_for_sale: {
    status: 400,
    meaning: 'The plan is not one that can be bought here; the message names those that can.',
  },
  signature_invalid: {
    status: 400,
    meaning: "The payment provider's signature of an event is missing, wrong or too old.",
  },
  unauthenticated: { status: 401, meaning: 'The bearer token is missing, malformed, unknown, expired or revoked.' },
  no_active_plan: { status: 402, meaning: 'The org has no active plan.' },
  billing_not_configured: {
    status: 402,
    meaning: 'This installation collects no payments; the message names what its operator has to set.',
  },
  auth_kind_not_allowed: { status: 403, meaning: 'The route does not take this kind of token.' },
  org_access_denied: {
    status: 403,
    meaning: 'The caller is not a member of the org that this belongs to, or its key is for another one.',
  },
  agent_token_access_denied: { status: 403, meaning: 'The personal agent token belongs to another user.' },
  file_access_denied: {
    status: 403,
    meaning: "The sandbox's own user may not do this in the sandbox's file system; the message names the path.",
  },
  invitation_for_another: {
    status: 403,
    meaning: 'The invitation was sent to another email address than the caller has.',
  },
  email_not_verified: { status: 403, meaning: "The caller's email address is not verified." },
  permission_denied: { status: 403, meaning: 'The caller lacks the permission that the message names.' },
  port_forbidden: { status: 403, meaning: "The port is one that the sandbox's own service holds." },
  route_not_found: { status: 404, meaning: 'There is no such path.' },
  org_not_found: { status: 404, meaning: 'There is no such org.' },
  sandbox_not_found: { status: 404, meaning: 'There is no such sandbox.' },
  project_not_found: { status: 404, meaning: 'There is no such project, or it was deleted.' },
  api_key_not_found: { status: 404, meaning: 'There is no such API key.' },
  agent_token_not_found: { status: 404, meaning: 'There is no such personal agent token.' },
  invitation_not_found: { status: 404, meaning: 'There is no such invitation, or its token is not valid any more.' },
  file_not_found: { status: 404, meaning: 'There is nothing at the path in the sandbox.' },
  preview_link_not_found: { status: 404, meaning: 'The sandbox has no such public preview link.' },
  member_not_found: { status: 404, meaning: 'The org has no such member.' },
  method_not_allowed: { status: 405, meaning: 'The path exists, but not with this method; see the header Allow.' },
  sandbox_state_conflict: {
    status: 409,
    meaning: 'The sandbox is in a status in which this is not possible; the message names both.',
  },
  concurrent_sandbox_limit: {
    status: 409,
    meaning: 'The org has as many sandboxes awake as its plan allows; the message names the limit.',
  },
  preview_link_limit: {
    status: 409,
    meaning: 'The sandbox has as many public preview links outstanding as it may; the message names the limit.',
  },
  machine_hour_limit: {
    status: 409,
    meaning:
      'The machine hours of this billing period are used up; the message names the cap, whose it is and how to raise it.',
  },
  plan_already_bought: { status: 409, meaning: 'The org pays for this plan already.' },
  project_has_sandboxes: {
    status: 409,
    meaning: 'The project has sandboxes that are not deleted; the message says how many.',
  },
  last_owner: { status: 409, meaning: 'The member is the only owner of the org.' },
  already_member: { status: 409, meaning: 'The user is a member of the org already.' },
  invitation_not_pending: {
    status: 409,
    meaning: 'The invitation was accepted or revoked, or has expired; the message says which.',
  },
  plan_limit: { status: 409, meaning: "More than the org's plan allows; the message names the limit." },
  idempotency_key_conflict: { status: 409, meaning: 'The Idempotency-Key was used for a create with another body.' },
  guest_disk_full: { status: 409, meaning: "The sandbox's disk is full; what was there of the file is untouched." },
  file_system_error: {
    status: 409,
    meaning: "The sandbox's file system refused the call; the message has the name of its error.",
  },
  session_cap_exhausted: { status: 410, meaning: "A renewal would pass the longest session of the org's plan." },
  payload_too_large: { status: 413, meaning: 'The body is longer than the route takes.' },
  file_too_large: {
    status: 413,
    meaning: 'The file is longer than is read or written at once; the message names the limit.',
  },
  unsupported_media_type: { status: 415, meaning: 'A body must be application/json.' },
  upgrade_required: { status: 426, meaning: 'The path is a WebSocket: ask for it with an upgrade to version 13.' },
  too_many_connections: { status: 429, meaning: 'The sandbox, or its host, has as many connections open as it may.' },
  rate_limited: {
    status: 429,
    meaning:
      'Too many requests with this credential, or from this address without one, or more of something than one may do in a time. See Retry-After.',
  },
  sandbox_busy: { status: 429, meaning: 'Too many file calls at once in this sandbox. See Retry-After.' },
  request_header_too_large: { status: 431, meaning: 'The headers are too long.' },
  internal: { status: 500, meaning: 'A fault in the service; the header x-request-id finds it in the log.' },
  port_refused: { status: 502, meaning: 'Nothing listens on that port of the sandbox.' },
  insufficient_capacity: {
    status: 503,
    meaning: 'No host has room for the machine; the message names the shortage. See Retry-After.',
  },
  host_unavailable: { status: 503, meaning: 'The machine that runs sandboxes does not answer. See Retry-After.' },
  sandbox_unreachable: {
    status: 503,
    meaning: 'The sandbox is awake by record, but its machine did not answer; a command may or may not have run.',
  },
  payment_provider_unavailable: {
    status: 503,
    meaning: 'The payment provider did not answer, or refused; nothing was bought. See Retry-After.',
  },
  shutting_down: { status: 503, meaning: 'This instance is stopping; try again.' },
  // On hosts of previews, where no route of this contract is.
  preview_link_required: {
    status: 401,
    meaning: 'The preview opens with a link that is good for it, and none was brought.',
  },
  preview_link_invalid: { status: 403, meaning: 'The preview link is not whole, or is for another preview.' },
  preview_not_found: { status: 404, meaning: 'There is no such preview, or its sandbox is gone.' },
  preview_upload_stalled: { status: 408, meaning: 'Nothing more of the request came for too long.' },
  preview_link_expired: { status: 410, meaning: 'The preview link has expired.' },
  preview_link_revoked: { status: 410, meaning: 'The preview link was revoked.' },
  preview_not_supported: { status: 501, meaning: 'The request is of a kind that previews do not pass on.' },
  preview_answer_broken: { status: 502, meaning: 'The app behind the preview broke off, or answered what is no HTTP.' },
  preview_sandbox_asleep: { status: 503, meaning: 'The sandbox behind the preview sleeps.' },
  preview_sandbox_starting: { status: 503, meaning: 'The sandbox behind the preview is starting. See Retry-After.' },
  preview_sandbox_failed: {
    status: 503,
    meaning: 'The sandbox behind the preview does not run, and was not woken; its page says which.',
  },
  preview_timed_out: { status: 504, meaning: 'The app behind the preview did not answer in time.' },
} as const satisfies Record<string, { status: number; meaning: string }>;
export type ErrorCode = keyof typeof ERRORS;

const codes = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];
export const errorCode = z.enum(codes);

/** The body of every error answer (spec: Errors). Clients accept codes they do not know. */
export const errorEnvelope = z.strictObject({ error: z.strictObject({ message: z.string().min(1), code: errorCode }) });
export type ErrorEnvelope = z.infer<typeof errorEnvelope>;

// Every error of the API: code, HTTP status, meaning, and the response body. Clients decide on the
// code, never on the message.
import { z } from 'zod';
import { LINK_ERRORS } from './link-errors.ts';

export const ERRORS = {
  invalid_json: { status: 400, meaning: 'The body is not valid JSON in UTF-8.' },
  invalid_request: {
    status: 400,
    meaning: 'A parameter or field is missing, invalid or unknown; the message names it and the allowed values.',
  },
  unknown_project: { status: 400, meaning: '`projectId` is not a project of this org.' },
  ephemeral_not_allowed: { status: 400, meaning: '`mode` is allowed only in projects with `useCase` `external`.' },
  not_ephemeral: { status: 400, meaning: 'The sandbox is not ephemeral; only ephemeral sandboxes can be renewed.' },
  wake_not_possible: {
    status: 400,
    meaning: 'The sandbox is not asleep, or has nothing to wake from; the message says which.',
  },
  allocation_out_of_bounds: {
    status: 400,
    meaning: 'The size is impossible: a smaller disk, or more than any host has. The message names the limit.',
  },
  file_path_invalid: { status: 400, meaning: 'The path is too long, or has a loop of symbolic links.' },
  not_a_file: { status: 400, meaning: 'The path is a directory, socket, device or FIFO; a file is required.' },
  not_a_directory: { status: 400, meaning: 'The path, or a parent of it, is a file; a directory is required.' },
  plan_not_for_sale: { status: 400, meaning: 'The plan cannot be bought; the message names the plans that can.' },
  signature_invalid: {
    status: 400,
    meaning: "The payment provider's signature of an event is missing, wrong or too old.",
  },
  unauthenticated: { status: 401, meaning: 'The bearer token is missing, malformed, unknown, expired or revoked.' },
  no_active_plan: { status: 402, meaning: 'The org has no active plan.' },
  billing_not_configured: {
    status: 402,
    meaning:
      'This installation does not collect payments; the message names the settings that the operator must configure.',
  },
  auth_kind_not_allowed: { status: 403, meaning: 'The route does not accept this kind of token.' },
  org_access_denied: {
    status: 403,
    meaning: 'The caller is not a member of the org that owns the resource, or the API key belongs to another org.',
  },
  agent_token_access_denied: { status: 403, meaning: 'The personal agent token belongs to another user.' },
  file_access_denied: {
    status: 403,
    meaning: 'The sandbox user lacks the file permission; the message names the path.',
  },
  invitation_for_another: { status: 403, meaning: 'The invitation was sent to another email address.' },
  email_not_verified: { status: 403, meaning: "The caller's email address is not verified." },
  reauthentication_required: {
    status: 403,
    meaning: 'The caller signed in too long ago for this action; the message names the limit and how to confirm it.',
  },
  sso_required: {
    status: 403,
    meaning:
      "The org requires single sign-on for the caller's address, or the change requires it; the message says how to " +
      'sign in.',
  },
  permission_denied: { status: 403, meaning: 'The caller lacks a permission; the message names it.' },
  origin_not_allowed: {
    status: 403,
    meaning: 'The request came from a web page of another origin, which may not use this path.',
  },
  port_forbidden: { status: 403, meaning: "The port is reserved for Berth's guest daemon." },
  route_not_found: { status: 404, meaning: 'The path does not exist.' },
  host_not_found: { status: 404, meaning: 'The installation has no such host.' },
  org_not_found: { status: 404, meaning: 'The org does not exist.' },
  sandbox_not_found: { status: 404, meaning: 'The sandbox does not exist.' },
  project_not_found: { status: 404, meaning: 'The project does not exist, or was deleted.' },
  agent_not_found: { status: 404, meaning: 'There is no such agent; the message names the agents.' },
  agent_session_not_found: { status: 404, meaning: 'The agent session does not exist.' },
  api_key_not_found: { status: 404, meaning: 'The API key does not exist.' },
  agent_token_not_found: { status: 404, meaning: 'The personal agent token does not exist.' },
  sign_in_not_found: { status: 404, meaning: 'The caller has no such sign-in, or it has ended.' },
  invitation_not_found: { status: 404, meaning: 'The invitation does not exist, or its token is no longer valid.' },
  domain_not_found: { status: 404, meaning: 'The org has no such domain, or the claim has expired.' },
  file_not_found: { status: 404, meaning: 'The path does not exist in the sandbox.' },
  preview_link_not_found: { status: 404, meaning: 'The sandbox has no such public preview link.' },
  member_not_found: { status: 404, meaning: 'The org has no such member.' },
  method_not_allowed: { status: 405, meaning: 'The path does not support this method; see the `Allow` header.' },
  sandbox_state_conflict: {
    status: 409,
    meaning: "The sandbox's status does not allow this; the message names the status and the allowed ones.",
  },
  concurrent_sandbox_limit: {
    status: 409,
    meaning: "The plan's limit of concurrent sandboxes is reached; the message names the limit.",
  },
  org_limit: {
    status: 409,
    meaning: 'The user has created the maximum number of orgs; the message names the limit and how to raise it.',
  },
  project_limit: {
    status: 409,
    meaning: 'The org has the maximum number of projects; the message names the limit and how to raise it.',
  },
  api_key_limit: {
    status: 409,
    meaning: 'The org has the maximum number of usable API keys; the message names the limit and how to raise it.',
  },
  agent_token_limit: {
    status: 409,
    meaning: 'The user has the maximum number of usable agent tokens; the message names the limit and how to raise it.',
  },
  domain_limit: { status: 409, meaning: 'The org has the maximum number of domains; the message names the limit.' },
  domain_not_verified: {
    status: 409,
    meaning: "The domain's TXT record is missing or wrong, or DNS did not respond; the message names the record.",
  },
  domain_taken: { status: 409, meaning: 'Another org has proven this domain.' },
  domain_needed: {
    status: 409,
    meaning: 'The org must keep a proven domain while it requires single sign-on, and have one before.',
  },
  preview_link_limit: {
    status: 409,
    meaning: 'The limit of public preview links of the sandbox is reached; the message names the limit.',
  },
  machine_hour_limit: {
    status: 409,
    meaning:
      'The machine hours of this billing period are used up; the message names the cap, its owner and how to raise it.',
  },
  plan_already_bought: { status: 409, meaning: 'The org already pays for this plan.' },
  project_has_sandboxes: { status: 409, meaning: 'The project still has sandboxes; the message gives their number.' },
  last_owner: { status: 409, meaning: 'The member is the only owner of the org.' },
  already_member: { status: 409, meaning: 'The user is already a member of the org.' },
  invitation_not_pending: {
    status: 409,
    meaning: 'The invitation was accepted or revoked, or has expired; the message says which.',
  },
  plan_limit: { status: 409, meaning: "The request exceeds the org's plan; the message names the limit." },
  sandbox_differs: { status: 409, meaning: 'The sandbox of this key has other fields; the message names them.' },
  idempotency_key_conflict: { status: 409, meaning: 'The Idempotency-Key was used with a different body.' },
  agent_turn_active: {
    status: 409,
    meaning: 'A turn is active; messages are never queued. Poll until it has ended, or interrupt it.',
  },
  agent_turn_not_active: { status: 409, meaning: 'No turn is active.' },
  agent_bridge_stopped: { status: 409, meaning: "The session's bridge has stopped; recover the session." },
  agent_process_alive: { status: 409, meaning: 'A process of an earlier bridge is alive; the message names it.' },
  agent_conversation_missing: { status: 409, meaning: 'The sandbox no longer has the saved conversation.' },
  agent_not_signed_in: {
    status: 409,
    meaning: 'The agent has no credentials; the message names both ways to provide them.',
  },
  agent_not_installed: { status: 409, meaning: "The sandbox's template does not have its agent." },
  agent_not_supported: {
    status: 409,
    meaning: 'The sandbox or its host is too old for agent sessions; the message says which.',
  },
  exec_options_unsupported: {
    status: 409,
    meaning: 'The sandbox is of a release without `cwd`, `env`, `user` and `stdin` of a command.',
  },
  variables_unsupported: { status: 409, meaning: 'The sandbox is of a release without variables of its own.' },
  processes_unsupported: { status: 409, meaning: 'The sandbox is of a release without processes.' },
  file_call_unsupported: { status: 409, meaning: 'The sandbox is of a release without this call of files.' },
  watch_too_large: { status: 409, meaning: 'There are too many folders below; the message names the limit.' },
  watch_limit: { status: 429, meaning: 'The limit of watched folders in the sandbox, or of inotify of its user.' },
  process_not_found: { status: 404, meaning: 'The sandbox has no such process, or has removed it to make room.' },
  process_over: { status: 409, meaning: 'The process has ended, or reads no input.' },
  process_input_gap: { status: 409, meaning: '`offset` is beyond the input so far; the message says how long it is.' },
  process_input_full: { status: 409, meaning: 'The process does not read its input; try again once it does.' },
  process_has_no_terminal: { status: 409, meaning: 'The process was started without `tty`.' },
  process_limit: { status: 429, meaning: 'The limit of processes that run in the sandbox.' },
  agent_session_limit: {
    status: 409,
    meaning: 'The limit of sessions or live agents of the sandbox, or its memory; the message names it.',
  },
  agent_prompt_not_pending: {
    status: 409,
    meaning: 'The approval is not pending: unknown, stale, of another type, or answered otherwise.',
  },
  agent_operation_unsupported: {
    status: 409,
    meaning: 'The session does not support the operation now; the message names it. See `communication.capabilities`.',
  },
  metrics_history_unsupported: {
    status: 409,
    meaning: "The sandbox's host runs an earlier release, which keeps no history of metrics.",
  },
  request_key_conflict: { status: 409, meaning: 'The `requestKey` was used with a different text.' },
  session_retry_upgrade_required: {
    status: 409,
    meaning: 'The bridge is too old for `requestKey`. Recover the session after its bridge has stopped, or create one.',
  },
  guest_disk_full: {
    status: 409,
    meaning: 'The disk is full; a file is unchanged, or by `offset` has the bytes that fit. A process is not started.',
  },
  file_system_error: { status: 409, meaning: "The sandbox's file system returned an error; the message names it." },
  file_changed: { status: 409, meaning: 'The file differs from the content or size that the write names.' },
  file_exists: { status: 409, meaning: 'A file or folder has this path already.' },
  folder_not_empty: { status: 409, meaning: 'The folder is not empty; it is deleted with `recursive=true`.' },
  upload_stalled: { status: 408, meaning: 'The request body stalled; only by `offset` were bytes written.' },
  session_cap_exhausted: {
    status: 410,
    meaning: "The renewal would exceed the plan's maximum lifetime of an ephemeral sandbox.",
  },
  payload_too_large: { status: 413, meaning: 'The body exceeds the maximum size of the route.' },
  file_too_large: {
    status: 413,
    meaning: 'The file exceeds the maximum size of one read or write; the message names the limit.',
  },
  range_not_satisfiable: { status: 416, meaning: 'The range begins behind the end; `Content-Range` has the size.' },
  unsupported_media_type: {
    status: 415,
    meaning: 'The body must be application/json, or the type that the route names.',
  },
  upgrade_required: { status: 426, meaning: 'The path is a WebSocket; send an upgrade request, version 13.' },
  too_many_connections: {
    status: 429,
    meaning:
      'A limit of open connections is reached: of the sandbox, of its org, of the host, of an API replica or of an ' +
      'address. The message names it.',
  },
  rate_limited: {
    status: 429,
    meaning:
      'Too many requests with this credential, of this org, from this address without a credential or to previews, ' +
      'or to a limited operation. See Retry-After.',
  },
  too_much_in_flight: {
    status: 429,
    meaning:
      'The bodies in flight of this org, or from this address, take too much memory; the message names the limit. ' +
      'See Retry-After.',
  },
  sandbox_busy: { status: 429, meaning: 'Too many concurrent file or agent calls in this sandbox. See Retry-After.' },
  request_header_too_large: { status: 431, meaning: 'The request headers are too long.' },
  internal: { status: 500, meaning: "Internal error; find it in the service's log by `x-request-id`." },
  port_refused: { status: 502, meaning: 'Nothing listens on this port of the sandbox.' },
  insufficient_capacity: {
    status: 503,
    meaning:
      'No host has enough capacity; the message names the shortage, and the setting that raises the limit. ' +
      'See Retry-After.',
  },
  host_unavailable: { status: 503, meaning: 'The host does not respond. See Retry-After.' },
  sandbox_unreachable: {
    status: 503,
    meaning: 'The sandbox is recorded as awake, but its VM gave no valid response; a command may have run.',
  },
  agent_bridge_not_ready: {
    status: 503,
    meaning: 'The agent was not ready in time; the message names the reason. Recover the session to try again.',
  },
  message_delivery_uncertain: {
    status: 503,
    meaning:
      'The message may or may not have been delivered as the turn `turnId`. Retry with the same key and text, or ' +
      'inspect the turn; without a key, inspect it before sending again.',
  },
  payment_provider_unavailable: {
    status: 503,
    meaning: 'The payment provider did not respond, or rejected the request; nothing was bought. See Retry-After.',
  },
  shutting_down: { status: 503, meaning: 'This API replica is shutting down; retry.' },
  ...LINK_ERRORS,
} as const satisfies Record<string, { status: number; meaning: string }>;
export type ErrorCode = keyof typeof ERRORS;

const errorCode = z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]);

/** Body of every error response (spec: Errors). Clients must accept unknown codes. */
export const errorEnvelope = z.strictObject({
  error: z.strictObject({
    message: z.string().min(1),
    code: errorCode,
    field: z
      .string()
      .optional()
      .describe('Path of the first field at fault, such as `body.name`, if the error is about one.'),
    turnId: z.string().optional().describe('Turn of an agent session, with `message_delivery_uncertain`.'),
  }),
});
export type ErrorEnvelope = z.infer<typeof errorEnvelope>;

// Written by npm run sdk:generate from contract/. Do not edit.

export const ERRORS = {
  "invalid_json": {
    "status": 400,
    "meaning": "The body is not valid JSON in UTF-8."
  },
  "invalid_request": {
    "status": 400,
    "meaning": "A parameter or field is missing, invalid or unknown; the message names it and the allowed values."
  },
  "unknown_project": {
    "status": 400,
    "meaning": "`projectId` is not a project of this org."
  },
  "ephemeral_not_allowed": {
    "status": 400,
    "meaning": "`mode` is allowed only in projects with `useCase` `external`."
  },
  "not_ephemeral": {
    "status": 400,
    "meaning": "The sandbox is not ephemeral; only ephemeral sandboxes can be renewed."
  },
  "wake_not_possible": {
    "status": 400,
    "meaning": "The sandbox is not asleep, or has nothing to wake from; the message says which."
  },
  "allocation_out_of_bounds": {
    "status": 400,
    "meaning": "The size is impossible: a smaller disk, or more than any host has. The message names the limit."
  },
  "file_path_invalid": {
    "status": 400,
    "meaning": "The path is too long, or has a loop of symbolic links."
  },
  "not_a_file": {
    "status": 400,
    "meaning": "The path is a directory, socket, device or FIFO; a file is required."
  },
  "not_a_directory": {
    "status": 400,
    "meaning": "The path, or a parent of it, is a file; a directory is required."
  },
  "plan_not_for_sale": {
    "status": 400,
    "meaning": "The plan cannot be bought; the message names the plans that can."
  },
  "signature_invalid": {
    "status": 400,
    "meaning": "The payment provider's signature of an event is missing, wrong or too old."
  },
  "unauthenticated": {
    "status": 401,
    "meaning": "The bearer token is missing, malformed, unknown, expired or revoked."
  },
  "no_active_plan": {
    "status": 402,
    "meaning": "The org has no active plan."
  },
  "billing_not_configured": {
    "status": 402,
    "meaning": "This installation does not collect payments; the message names the settings that the operator must configure."
  },
  "auth_kind_not_allowed": {
    "status": 403,
    "meaning": "The route does not accept this kind of token."
  },
  "org_access_denied": {
    "status": 403,
    "meaning": "The caller is not a member of the org that owns the resource, or the API key belongs to another org."
  },
  "agent_token_access_denied": {
    "status": 403,
    "meaning": "The personal agent token belongs to another user."
  },
  "file_access_denied": {
    "status": 403,
    "meaning": "The sandbox user lacks the file permission; the message names the path."
  },
  "invitation_for_another": {
    "status": 403,
    "meaning": "The invitation was sent to another email address."
  },
  "email_not_verified": {
    "status": 403,
    "meaning": "The caller's email address is not verified."
  },
  "reauthentication_required": {
    "status": 403,
    "meaning": "The caller signed in too long ago for this action; the message names the limit and how to confirm it."
  },
  "sso_required": {
    "status": 403,
    "meaning": "The org requires single sign-on for the caller's address, or the change requires it; the message says how to sign in."
  },
  "permission_denied": {
    "status": 403,
    "meaning": "The caller lacks a permission; the message names it."
  },
  "origin_not_allowed": {
    "status": 403,
    "meaning": "The request came from a web page of another origin, which may not use this path."
  },
  "port_forbidden": {
    "status": 403,
    "meaning": "The port is reserved for Berth's guest daemon."
  },
  "route_not_found": {
    "status": 404,
    "meaning": "The path does not exist."
  },
  "host_not_found": {
    "status": 404,
    "meaning": "The installation has no such host."
  },
  "org_not_found": {
    "status": 404,
    "meaning": "The org does not exist."
  },
  "sandbox_not_found": {
    "status": 404,
    "meaning": "The sandbox does not exist."
  },
  "project_not_found": {
    "status": 404,
    "meaning": "The project does not exist, or was deleted."
  },
  "agent_not_found": {
    "status": 404,
    "meaning": "There is no such agent; the message names the agents."
  },
  "agent_session_not_found": {
    "status": 404,
    "meaning": "The agent session does not exist."
  },
  "api_key_not_found": {
    "status": 404,
    "meaning": "The API key does not exist."
  },
  "agent_token_not_found": {
    "status": 404,
    "meaning": "The personal agent token does not exist."
  },
  "sign_in_not_found": {
    "status": 404,
    "meaning": "The caller has no such sign-in, or it has ended."
  },
  "invitation_not_found": {
    "status": 404,
    "meaning": "The invitation does not exist, or its token is no longer valid."
  },
  "domain_not_found": {
    "status": 404,
    "meaning": "The org has no such domain, or the claim has expired."
  },
  "file_not_found": {
    "status": 404,
    "meaning": "The path does not exist in the sandbox."
  },
  "preview_link_not_found": {
    "status": 404,
    "meaning": "The sandbox has no such public preview link."
  },
  "member_not_found": {
    "status": 404,
    "meaning": "The org has no such member."
  },
  "method_not_allowed": {
    "status": 405,
    "meaning": "The path does not support this method; see the `Allow` header."
  },
  "sandbox_state_conflict": {
    "status": 409,
    "meaning": "The sandbox's status does not allow this; the message names the status and the allowed ones."
  },
  "concurrent_sandbox_limit": {
    "status": 409,
    "meaning": "The plan's limit of concurrent sandboxes is reached; the message names the limit."
  },
  "org_limit": {
    "status": 409,
    "meaning": "The user has created the maximum number of orgs; the message names the limit and how to raise it."
  },
  "project_limit": {
    "status": 409,
    "meaning": "The org has the maximum number of projects; the message names the limit and how to raise it."
  },
  "api_key_limit": {
    "status": 409,
    "meaning": "The org has the maximum number of usable API keys; the message names the limit and how to raise it."
  },
  "agent_token_limit": {
    "status": 409,
    "meaning": "The user has the maximum number of usable agent tokens; the message names the limit and how to raise it."
  },
  "domain_limit": {
    "status": 409,
    "meaning": "The org has the maximum number of domains; the message names the limit."
  },
  "domain_not_verified": {
    "status": 409,
    "meaning": "The domain's TXT record is missing or wrong, or DNS did not respond; the message names the record."
  },
  "domain_taken": {
    "status": 409,
    "meaning": "Another org has proven this domain."
  },
  "domain_needed": {
    "status": 409,
    "meaning": "The org must keep a proven domain while it requires single sign-on, and have one before."
  },
  "preview_link_limit": {
    "status": 409,
    "meaning": "The limit of public preview links of the sandbox is reached; the message names the limit."
  },
  "machine_hour_limit": {
    "status": 409,
    "meaning": "The machine hours of this billing period are used up; the message names the cap, its owner and how to raise it."
  },
  "plan_already_bought": {
    "status": 409,
    "meaning": "The org already pays for this plan."
  },
  "project_has_sandboxes": {
    "status": 409,
    "meaning": "The project still has sandboxes; the message gives their number."
  },
  "last_owner": {
    "status": 409,
    "meaning": "The member is the only owner of the org."
  },
  "already_member": {
    "status": 409,
    "meaning": "The user is already a member of the org."
  },
  "invitation_not_pending": {
    "status": 409,
    "meaning": "The invitation was accepted or revoked, or has expired; the message says which."
  },
  "plan_limit": {
    "status": 409,
    "meaning": "The request exceeds the org's plan; the message names the limit."
  },
  "sandbox_differs": {
    "status": 409,
    "meaning": "The sandbox of this key has other fields; the message names them."
  },
  "idempotency_key_conflict": {
    "status": 409,
    "meaning": "The Idempotency-Key was used with a different body."
  },
  "agent_turn_active": {
    "status": 409,
    "meaning": "A turn is active; messages are never queued. Poll until it has ended, or interrupt it."
  },
  "agent_turn_not_active": {
    "status": 409,
    "meaning": "No turn is active."
  },
  "agent_bridge_stopped": {
    "status": 409,
    "meaning": "The session's bridge has stopped; recover the session."
  },
  "agent_process_alive": {
    "status": 409,
    "meaning": "A process of an earlier bridge is alive; the message names it."
  },
  "agent_conversation_missing": {
    "status": 409,
    "meaning": "The sandbox no longer has the saved conversation."
  },
  "agent_not_signed_in": {
    "status": 409,
    "meaning": "The agent has no credentials; the message names both ways to provide them."
  },
  "agent_not_installed": {
    "status": 409,
    "meaning": "The sandbox's template does not have its agent."
  },
  "agent_not_supported": {
    "status": 409,
    "meaning": "The sandbox or its host is too old for agent sessions; the message says which."
  },
  "exec_options_unsupported": {
    "status": 409,
    "meaning": "The sandbox is of a release without `cwd`, `env`, `user` and `stdin` of a command."
  },
  "variables_unsupported": {
    "status": 409,
    "meaning": "The sandbox is of a release without variables of its own."
  },
  "processes_unsupported": {
    "status": 409,
    "meaning": "The sandbox is of a release without processes."
  },
  "file_call_unsupported": {
    "status": 409,
    "meaning": "The sandbox is of a release without this call of files."
  },
  "watch_too_large": {
    "status": 409,
    "meaning": "There are too many folders below; the message names the limit."
  },
  "watch_limit": {
    "status": 429,
    "meaning": "The limit of watched folders in the sandbox, or of inotify of its user."
  },
  "process_not_found": {
    "status": 404,
    "meaning": "The sandbox has no such process, or has removed it to make room."
  },
  "process_over": {
    "status": 409,
    "meaning": "The process has ended, or reads no input."
  },
  "process_input_gap": {
    "status": 409,
    "meaning": "`offset` is beyond the input so far; the message says how long it is."
  },
  "process_input_full": {
    "status": 409,
    "meaning": "The process does not read its input; try again once it does."
  },
  "process_has_no_terminal": {
    "status": 409,
    "meaning": "The process was started without `tty`."
  },
  "process_limit": {
    "status": 429,
    "meaning": "The limit of processes that run in the sandbox."
  },
  "agent_session_limit": {
    "status": 409,
    "meaning": "The limit of sessions or live agents of the sandbox, or its memory; the message names it."
  },
  "agent_prompt_not_pending": {
    "status": 409,
    "meaning": "The approval is not pending: unknown, stale, of another type, or answered otherwise."
  },
  "agent_operation_unsupported": {
    "status": 409,
    "meaning": "The session does not support the operation now; the message names it. See `communication.capabilities`."
  },
  "metrics_history_unsupported": {
    "status": 409,
    "meaning": "The sandbox's host runs an earlier release, which keeps no history of metrics."
  },
  "request_key_conflict": {
    "status": 409,
    "meaning": "The `requestKey` was used with a different text."
  },
  "session_retry_upgrade_required": {
    "status": 409,
    "meaning": "The bridge is too old for `requestKey`. Recover the session after its bridge has stopped, or create one."
  },
  "guest_disk_full": {
    "status": 409,
    "meaning": "The disk is full; a file is unchanged, or by `offset` has the bytes that fit. A process is not started."
  },
  "file_system_error": {
    "status": 409,
    "meaning": "The sandbox's file system returned an error; the message names it."
  },
  "file_changed": {
    "status": 409,
    "meaning": "The file differs from the content or size that the write names."
  },
  "file_exists": {
    "status": 409,
    "meaning": "A file or folder has this path already."
  },
  "folder_not_empty": {
    "status": 409,
    "meaning": "The folder is not empty; it is deleted with `recursive=true`."
  },
  "upload_stalled": {
    "status": 408,
    "meaning": "The request body stalled; only by `offset` were bytes written."
  },
  "session_cap_exhausted": {
    "status": 410,
    "meaning": "The renewal would exceed the plan's maximum lifetime of an ephemeral sandbox."
  },
  "payload_too_large": {
    "status": 413,
    "meaning": "The body exceeds the maximum size of the route."
  },
  "file_too_large": {
    "status": 413,
    "meaning": "The file exceeds the maximum size of one read or write; the message names the limit."
  },
  "range_not_satisfiable": {
    "status": 416,
    "meaning": "The range begins behind the end; `Content-Range` has the size."
  },
  "unsupported_media_type": {
    "status": 415,
    "meaning": "The body must be application/json, or the type that the route names."
  },
  "upgrade_required": {
    "status": 426,
    "meaning": "The path is a WebSocket; send an upgrade request, version 13."
  },
  "too_many_connections": {
    "status": 429,
    "meaning": "A limit of open connections is reached: of the sandbox, of its org, of the host, of an API replica or of an address. The message names it."
  },
  "rate_limited": {
    "status": 429,
    "meaning": "Too many requests with this credential, of this org, from this address without a credential or to previews, or to a limited operation. See Retry-After."
  },
  "too_much_in_flight": {
    "status": 429,
    "meaning": "The bodies in flight of this org, or from this address, take too much memory; the message names the limit. See Retry-After."
  },
  "sandbox_busy": {
    "status": 429,
    "meaning": "Too many concurrent file or agent calls in this sandbox. See Retry-After."
  },
  "request_header_too_large": {
    "status": 431,
    "meaning": "The request headers are too long."
  },
  "internal": {
    "status": 500,
    "meaning": "Internal error; find it in the service's log by `x-request-id`."
  },
  "port_refused": {
    "status": 502,
    "meaning": "Nothing listens on this port of the sandbox."
  },
  "insufficient_capacity": {
    "status": 503,
    "meaning": "No host has enough capacity; the message names the shortage, and the setting that raises the limit. See Retry-After."
  },
  "host_unavailable": {
    "status": 503,
    "meaning": "The host does not respond. See Retry-After."
  },
  "sandbox_unreachable": {
    "status": 503,
    "meaning": "The sandbox is recorded as awake, but its VM gave no valid response; a command may have run."
  },
  "agent_bridge_not_ready": {
    "status": 503,
    "meaning": "The agent was not ready in time; the message names the reason. Recover the session to try again."
  },
  "message_delivery_uncertain": {
    "status": 503,
    "meaning": "The message may or may not have been delivered as the turn `turnId`. Retry with the same key and text, or inspect the turn; without a key, inspect it before sending again."
  },
  "payment_provider_unavailable": {
    "status": 503,
    "meaning": "The payment provider did not respond, or rejected the request; nothing was bought. See Retry-After."
  },
  "shutting_down": {
    "status": 503,
    "meaning": "This API replica is shutting down; retry."
  },
  "file_link_invalid": {
    "status": 403,
    "meaning": "The file link is incomplete, or not of this installation."
  },
  "file_link_expired": {
    "status": 410,
    "meaning": "The file link has expired, or its sandbox or the right to it is gone."
  },
  "file_link_unavailable": {
    "status": 503,
    "meaning": "The sandbox of the file link is asleep, or does not respond."
  },
  "preview_link_required": {
    "status": 401,
    "meaning": "The preview requires a valid link, and the request has none."
  },
  "preview_link_invalid": {
    "status": 403,
    "meaning": "The preview link is incomplete, or belongs to another preview."
  },
  "preview_cross_origin": {
    "status": 403,
    "meaning": "The request came from a page of another origin, which may not use the visitor's access."
  },
  "preview_not_found": {
    "status": 404,
    "meaning": "The preview does not exist, or its sandbox was deleted."
  },
  "preview_upload_stalled": {
    "status": 408,
    "meaning": "The request body stalled for too long."
  },
  "preview_link_expired": {
    "status": 410,
    "meaning": "The preview link has expired."
  },
  "preview_link_revoked": {
    "status": 410,
    "meaning": "The preview link was revoked."
  },
  "preview_not_supported": {
    "status": 501,
    "meaning": "Previews do not support this kind of request."
  },
  "preview_answer_broken": {
    "status": 502,
    "meaning": "The app behind the preview closed the connection early, or did not send valid HTTP."
  },
  "preview_sandbox_asleep": {
    "status": 503,
    "meaning": "The sandbox behind the preview is asleep."
  },
  "preview_sandbox_starting": {
    "status": 503,
    "meaning": "The sandbox behind the preview is starting. See Retry-After."
  },
  "preview_sandbox_failed": {
    "status": 503,
    "meaning": "The sandbox behind the preview is not running and was not woken; the page says why."
  },
  "preview_timed_out": {
    "status": 504,
    "meaning": "The app behind the preview did not respond in time."
  }
} as const;

export const PROFILE_SIZES = {
  "auto": "small",
  "agent-small": "small",
  "agent-standard": "medium",
  "build-heavy": "large",
  "browser-heavy": "large",
  "repo-large": "xlarge",
  "long-running": "medium"
} as const;

export const SIZE_PROFILES = {
  "small": "agent-small",
  "medium": "agent-standard",
  "large": "build-heavy",
  "xlarge": "repo-large"
} as const;

export const REFUSAL_CODES = {
  "exec": "sandbox_state_conflict",
  "connect": "sandbox_state_conflict",
  "ssh_access": "sandbox_state_conflict",
  "files_read": "sandbox_state_conflict",
  "files_write": "sandbox_state_conflict",
  "sleep": "sandbox_state_conflict",
  "wake": "wake_not_possible",
  "resize": "sandbox_state_conflict",
  "renew": "sandbox_state_conflict",
  "metrics_live": "sandbox_state_conflict",
  "metrics_history": "sandbox_state_conflict",
  "metrics_sample": "sandbox_state_conflict",
  "preview_link": "sandbox_state_conflict",
  "file_link": "sandbox_state_conflict",
  "agent_session": "sandbox_state_conflict",
  "destroy": "sandbox_state_conflict"
} as const;

export const AGENT_OPERATIONS = {
  "managed": {
    "starting": [
      "output"
    ],
    "ready": [
      "messages",
      "output",
      "approvals",
      "interruption",
      "recovery"
    ],
    "suspended": [],
    "stopped": [
      "output",
      "recovery"
    ],
    "gone": []
  },
  "terminal": {
    "starting": [],
    "ready": [],
    "suspended": [],
    "stopped": [],
    "gone": []
  },
  "terminalPending": {
    "starting": [
      "output"
    ],
    "ready": [
      "output",
      "recovery"
    ],
    "suspended": [],
    "stopped": [
      "output",
      "recovery"
    ],
    "gone": []
  },
  "terminalOpen": {
    "starting": [
      "output"
    ],
    "ready": [
      "messages",
      "output",
      "approvals",
      "interruption",
      "recovery"
    ],
    "suspended": [],
    "stopped": [
      "output",
      "recovery"
    ],
    "gone": []
  }
} as const;

export const TURN_STATES = {
  "sending": {
    "meaning": "its message is being delivered, or its delivery is unknown",
    "active": true,
    "next": [
      "running",
      "waiting",
      "interrupting",
      "completed",
      "failed",
      "canceled"
    ]
  },
  "running": {
    "meaning": "the agent works on it",
    "active": true,
    "next": [
      "waiting",
      "interrupting",
      "completed",
      "failed",
      "canceled"
    ]
  },
  "waiting": {
    "meaning": "the agent waits for an answer to an approval",
    "active": true,
    "next": [
      "running",
      "interrupting",
      "completed",
      "failed",
      "canceled"
    ]
  },
  "interrupting": {
    "meaning": "its interrupt was requested",
    "active": true,
    "next": [
      "completed",
      "failed",
      "canceled"
    ]
  },
  "completed": {
    "meaning": "the agent finished it",
    "active": false,
    "next": []
  },
  "failed": {
    "meaning": "it failed; see the reason for whether it may have had effects",
    "active": false,
    "next": []
  },
  "canceled": {
    "meaning": "it was interrupted or canceled",
    "active": false,
    "next": []
  }
} as const;

export const ROUTES = [
  {
    "name": "getHealth",
    "method": "GET",
    "path": "/health",
    "auth": [],
    "permission": null,
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getService",
    "method": "GET",
    "path": "/v1/service",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": null,
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listHosts",
    "method": "GET",
    "path": "/v1/service/hosts",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "hosts.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      }
    ],
    "body": null
  },
  {
    "name": "getHost",
    "method": "GET",
    "path": "/v1/service/hosts/{hostId}",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "hosts.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      }
    ],
    "body": null
  },
  {
    "name": "getMe",
    "method": "GET",
    "path": "/v1/me",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": null,
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "updateMe",
    "method": "PATCH",
    "path": "/v1/me",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": "member_renamed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateMeRequest"
      }
    }
  },
  {
    "name": "listMyOrgs",
    "method": "GET",
    "path": "/v1/me/orgs",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": null,
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "leaveOrg",
    "method": "DELETE",
    "path": "/v1/me/orgs/{orgId}",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": "member_removed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listAgentTokens",
    "method": "GET",
    "path": "/v1/me/agent-tokens",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "createAgentToken",
    "method": "POST",
    "path": "/v1/me/agent-tokens",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": "agent_token_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateAgentTokenRequest"
      }
    }
  },
  {
    "name": "revokeAgentToken",
    "method": "DELETE",
    "path": "/v1/me/agent-tokens/{tokenId}",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": "agent_token_revoked",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listOrgAgentTokens",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/agent-tokens",
    "auth": [
      "session"
    ],
    "permission": "api_keys.manage",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "revokeOrgAgentToken",
    "method": "DELETE",
    "path": "/v1/orgs/{orgId}/agent-tokens/{tokenId}",
    "auth": [
      "session"
    ],
    "permission": "api_keys.manage",
    "activity": "agent_token_revoked",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listSignIns",
    "method": "GET",
    "path": "/v1/me/sign-ins",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "endSignIn",
    "method": "DELETE",
    "path": "/v1/me/sign-ins/{signInId}",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": "sign_in_ended",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "endOtherSignIns",
    "method": "DELETE",
    "path": "/v1/me/sign-ins",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": "sign_in_ended",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "createOrg",
    "method": "POST",
    "path": "/v1/orgs",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": "org_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateOrgRequest"
      }
    }
  },
  {
    "name": "updateOrg",
    "method": "PATCH",
    "path": "/v1/orgs/{orgId}",
    "auth": [
      "session"
    ],
    "permission": "org.update",
    "activity": "org_updated",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateOrgRequest"
      }
    }
  },
  {
    "name": "listMembers",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/members",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "org.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "updateMember",
    "method": "PATCH",
    "path": "/v1/orgs/{orgId}/members/{userId}",
    "auth": [
      "session"
    ],
    "permission": "org.members.manage",
    "activity": "member_role_changed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateMemberRequest"
      }
    }
  },
  {
    "name": "removeMember",
    "method": "DELETE",
    "path": "/v1/orgs/{orgId}/members/{userId}",
    "auth": [
      "session"
    ],
    "permission": "org.members.manage",
    "activity": "member_removed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getSso",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/sso",
    "auth": [
      "session"
    ],
    "permission": "org.owners.manage",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "updateSso",
    "method": "PATCH",
    "path": "/v1/orgs/{orgId}/sso",
    "auth": [
      "session"
    ],
    "permission": "org.owners.manage",
    "activity": "sso_changed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateSsoRequest"
      }
    }
  },
  {
    "name": "claimDomain",
    "method": "POST",
    "path": "/v1/orgs/{orgId}/domains",
    "auth": [
      "session"
    ],
    "permission": "org.owners.manage",
    "activity": "domain_claimed",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/ClaimDomainRequest"
      }
    }
  },
  {
    "name": "verifyDomain",
    "method": "POST",
    "path": "/v1/orgs/{orgId}/domains/{domainId}/verify",
    "auth": [
      "session"
    ],
    "permission": "org.owners.manage",
    "activity": "domain_verified",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "removeDomain",
    "method": "DELETE",
    "path": "/v1/orgs/{orgId}/domains/{domainId}",
    "auth": [
      "session"
    ],
    "permission": "org.owners.manage",
    "activity": "domain_removed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getSubscription",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/subscription",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "org.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listPlans",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/plans",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "org.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "createCheckout",
    "method": "POST",
    "path": "/v1/orgs/{orgId}/billing/checkout",
    "auth": [
      "session"
    ],
    "permission": "billing.manage",
    "activity": "checkout_started",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateCheckoutRequest"
      }
    }
  },
  {
    "name": "listInvitations",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/invitations",
    "auth": [
      "session"
    ],
    "permission": "org.members.manage",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "createInvitation",
    "method": "POST",
    "path": "/v1/orgs/{orgId}/invitations",
    "auth": [
      "session"
    ],
    "permission": "org.members.manage",
    "activity": "invitation_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateInvitationRequest"
      }
    }
  },
  {
    "name": "revokeInvitation",
    "method": "DELETE",
    "path": "/v1/orgs/{orgId}/invitations/{invitationId}",
    "auth": [
      "session"
    ],
    "permission": "org.members.manage",
    "activity": "invitation_revoked",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getInvitation",
    "method": "GET",
    "path": "/v1/invitations/{token}",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "acceptInvitation",
    "method": "POST",
    "path": "/v1/invitations/{token}/accept",
    "auth": [
      "session"
    ],
    "permission": null,
    "activity": "invitation_accepted",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listApiKeys",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/api-keys",
    "auth": [
      "session"
    ],
    "permission": "api_keys.manage",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "createApiKey",
    "method": "POST",
    "path": "/v1/orgs/{orgId}/api-keys",
    "auth": [
      "session"
    ],
    "permission": "api_keys.manage",
    "activity": "api_key_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateApiKeyRequest"
      }
    }
  },
  {
    "name": "revokeApiKey",
    "method": "DELETE",
    "path": "/v1/orgs/{orgId}/api-keys/{keyId}",
    "auth": [
      "session"
    ],
    "permission": "api_keys.manage",
    "activity": "api_key_revoked",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listActivity",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/activity",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "activity.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "kind",
        "required": false,
        "schema": {
          "type": "string",
          "enum": [
            "org_created",
            "org_updated",
            "owner_link_created",
            "plan_changed",
            "checkout_started",
            "subscription_changed",
            "usage_guardrails_updated",
            "usage_cap_warning",
            "member_role_changed",
            "member_removed",
            "member_renamed",
            "invitation_created",
            "invitation_sent",
            "invitation_revoked",
            "invitation_accepted",
            "domain_claimed",
            "domain_verified",
            "domain_removed",
            "sso_changed",
            "api_key_created",
            "api_key_revoked",
            "agent_token_created",
            "agent_token_revoked",
            "sign_in_ended",
            "project_created",
            "project_updated",
            "project_deleted",
            "agent_credentials_updated",
            "agent_credentials_removed",
            "agent_session_created",
            "agent_session_recovered",
            "agent_session_stopped",
            "agent_message_sent",
            "agent_turn_ended",
            "agent_turn_interrupted",
            "agent_prompt_requested",
            "agent_prompt_answered",
            "sandbox_created",
            "sandbox_running",
            "sandbox_ready",
            "sandbox_failed",
            "sandbox_clone_started",
            "sandbox_clone_finished",
            "sandbox_clone_failed",
            "sandbox_exec",
            "sandbox_file_link_created",
            "sandbox_process_started",
            "sandbox_process_signaled",
            "sandbox_process_removed",
            "sandbox_connected",
            "sandbox_file_written",
            "sandbox_file_deleted",
            "sandbox_file_moved",
            "sandbox_file_mode_changed",
            "sandbox_folder_created",
            "preview_link_created",
            "preview_link_revoked",
            "sandbox_sleep_requested",
            "sandbox_sleep_failed",
            "sandbox_stopped",
            "sandbox_wake_requested",
            "sandbox_wake_failed",
            "sandbox_woken",
            "sandbox_recovered",
            "sandbox_resize_requested",
            "sandbox_resized",
            "sandbox_resize_deferred",
            "sandbox_egress_changed",
            "sandbox_updated",
            "sandbox_variables_changed",
            "sandbox_egress_denied",
            "sandbox_renewed",
            "sandbox_expired",
            "sandbox_metrics_sample",
            "sandbox_destroy_requested",
            "sandbox_deleted"
          ]
        }
      },
      {
        "name": "projectId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "sandboxId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "followActivity",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/activity/follow",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "activity.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "since",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "kind",
        "required": false,
        "schema": {
          "minItems": 1,
          "maxItems": 76,
          "type": "array",
          "items": {
            "type": "string",
            "enum": [
              "org_created",
              "org_updated",
              "owner_link_created",
              "plan_changed",
              "checkout_started",
              "subscription_changed",
              "usage_guardrails_updated",
              "usage_cap_warning",
              "member_role_changed",
              "member_removed",
              "member_renamed",
              "invitation_created",
              "invitation_sent",
              "invitation_revoked",
              "invitation_accepted",
              "domain_claimed",
              "domain_verified",
              "domain_removed",
              "sso_changed",
              "api_key_created",
              "api_key_revoked",
              "agent_token_created",
              "agent_token_revoked",
              "sign_in_ended",
              "project_created",
              "project_updated",
              "project_deleted",
              "agent_credentials_updated",
              "agent_credentials_removed",
              "agent_session_created",
              "agent_session_recovered",
              "agent_session_stopped",
              "agent_message_sent",
              "agent_turn_ended",
              "agent_turn_interrupted",
              "agent_prompt_requested",
              "agent_prompt_answered",
              "sandbox_created",
              "sandbox_running",
              "sandbox_ready",
              "sandbox_failed",
              "sandbox_clone_started",
              "sandbox_clone_finished",
              "sandbox_clone_failed",
              "sandbox_exec",
              "sandbox_file_link_created",
              "sandbox_process_started",
              "sandbox_process_signaled",
              "sandbox_process_removed",
              "sandbox_connected",
              "sandbox_file_written",
              "sandbox_file_deleted",
              "sandbox_file_moved",
              "sandbox_file_mode_changed",
              "sandbox_folder_created",
              "preview_link_created",
              "preview_link_revoked",
              "sandbox_sleep_requested",
              "sandbox_sleep_failed",
              "sandbox_stopped",
              "sandbox_wake_requested",
              "sandbox_wake_failed",
              "sandbox_woken",
              "sandbox_recovered",
              "sandbox_resize_requested",
              "sandbox_resized",
              "sandbox_resize_deferred",
              "sandbox_egress_changed",
              "sandbox_updated",
              "sandbox_variables_changed",
              "sandbox_egress_denied",
              "sandbox_renewed",
              "sandbox_expired",
              "sandbox_metrics_sample",
              "sandbox_destroy_requested",
              "sandbox_deleted"
            ]
          }
        }
      },
      {
        "name": "exceptKind",
        "required": false,
        "schema": {
          "minItems": 1,
          "maxItems": 76,
          "type": "array",
          "items": {
            "type": "string",
            "enum": [
              "org_created",
              "org_updated",
              "owner_link_created",
              "plan_changed",
              "checkout_started",
              "subscription_changed",
              "usage_guardrails_updated",
              "usage_cap_warning",
              "member_role_changed",
              "member_removed",
              "member_renamed",
              "invitation_created",
              "invitation_sent",
              "invitation_revoked",
              "invitation_accepted",
              "domain_claimed",
              "domain_verified",
              "domain_removed",
              "sso_changed",
              "api_key_created",
              "api_key_revoked",
              "agent_token_created",
              "agent_token_revoked",
              "sign_in_ended",
              "project_created",
              "project_updated",
              "project_deleted",
              "agent_credentials_updated",
              "agent_credentials_removed",
              "agent_session_created",
              "agent_session_recovered",
              "agent_session_stopped",
              "agent_message_sent",
              "agent_turn_ended",
              "agent_turn_interrupted",
              "agent_prompt_requested",
              "agent_prompt_answered",
              "sandbox_created",
              "sandbox_running",
              "sandbox_ready",
              "sandbox_failed",
              "sandbox_clone_started",
              "sandbox_clone_finished",
              "sandbox_clone_failed",
              "sandbox_exec",
              "sandbox_file_link_created",
              "sandbox_process_started",
              "sandbox_process_signaled",
              "sandbox_process_removed",
              "sandbox_connected",
              "sandbox_file_written",
              "sandbox_file_deleted",
              "sandbox_file_moved",
              "sandbox_file_mode_changed",
              "sandbox_folder_created",
              "preview_link_created",
              "preview_link_revoked",
              "sandbox_sleep_requested",
              "sandbox_sleep_failed",
              "sandbox_stopped",
              "sandbox_wake_requested",
              "sandbox_wake_failed",
              "sandbox_woken",
              "sandbox_recovered",
              "sandbox_resize_requested",
              "sandbox_resized",
              "sandbox_resize_deferred",
              "sandbox_egress_changed",
              "sandbox_updated",
              "sandbox_variables_changed",
              "sandbox_egress_denied",
              "sandbox_renewed",
              "sandbox_expired",
              "sandbox_metrics_sample",
              "sandbox_destroy_requested",
              "sandbox_deleted"
            ]
          }
        }
      },
      {
        "name": "projectId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "sandboxId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "exportActivity",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/activity/export",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "activity.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "getOrgUsage",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/usage",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "billing.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "projectId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "endUserId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 512,
          "pattern": "^[^\\x00]*$"
        }
      }
    ],
    "body": null
  },
  {
    "name": "getDailyUsage",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/usage/daily",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "billing.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "days",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 92
        }
      },
      {
        "name": "projectId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "endUserId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 512,
          "pattern": "^[^\\x00]*$"
        }
      }
    ],
    "body": null
  },
  {
    "name": "getEndUserUsage",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/usage/end-users",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "billing.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listProjects",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/projects",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "project.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "createProject",
    "method": "POST",
    "path": "/v1/orgs/{orgId}/projects",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "project.create",
    "activity": "project_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateProjectRequest"
      }
    }
  },
  {
    "name": "getProject",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/projects/{projectId}",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "project.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "updateProject",
    "method": "PATCH",
    "path": "/v1/orgs/{orgId}/projects/{projectId}",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "project.update",
    "activity": "project_updated",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateProjectRequest"
      }
    }
  },
  {
    "name": "deleteProject",
    "method": "DELETE",
    "path": "/v1/orgs/{orgId}/projects/{projectId}",
    "auth": [
      "session"
    ],
    "permission": "project.delete",
    "activity": "project_deleted",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getAgentCredentials",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/projects/{projectId}/agent-credentials/{agent}",
    "auth": [
      "session"
    ],
    "permission": "agent_credentials.manage",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "putAgentCredentials",
    "method": "PUT",
    "path": "/v1/orgs/{orgId}/projects/{projectId}/agent-credentials/{agent}",
    "auth": [
      "session"
    ],
    "permission": "agent_credentials.manage",
    "activity": "agent_credentials_updated",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/PutAgentCredentialsRequest"
      }
    }
  },
  {
    "name": "deleteAgentCredentials",
    "method": "DELETE",
    "path": "/v1/orgs/{orgId}/projects/{projectId}/agent-credentials/{agent}",
    "auth": [
      "session"
    ],
    "permission": "agent_credentials.manage",
    "activity": "agent_credentials_removed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "createAgentSession",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/agent-sessions",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.send",
    "activity": "agent_session_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listAgentSessions",
    "method": "GET",
    "path": "/v1/agent-sessions",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "orgId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "projectId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "sandboxId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "needsYou",
        "required": false,
        "schema": {
          "type": "string",
          "enum": [
            "true",
            "false"
          ]
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 100
        }
      }
    ],
    "body": null
  },
  {
    "name": "getAgentSession",
    "method": "GET",
    "path": "/v1/agent-sessions/{sessionId}",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "revision",
        "required": false,
        "schema": {
          "type": "string",
          "maxLength": 200
        }
      },
      {
        "name": "detail",
        "required": false,
        "schema": {
          "default": "short",
          "type": "string",
          "enum": [
            "short",
            "full"
          ]
        }
      }
    ],
    "body": null
  },
  {
    "name": "recoverAgentSession",
    "method": "POST",
    "path": "/v1/agent-sessions/{sessionId}/recover",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.send",
    "activity": "agent_session_recovered",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "sendAgentMessage",
    "method": "POST",
    "path": "/v1/agent-sessions/{sessionId}/messages",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.send",
    "activity": "agent_message_sent",
    "status": 202,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/SendAgentMessageRequest"
      }
    }
  },
  {
    "name": "getAgentOutput",
    "method": "GET",
    "path": "/v1/agent-sessions/{sessionId}/output",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 100
        }
      }
    ],
    "body": null
  },
  {
    "name": "listAgentTurns",
    "method": "GET",
    "path": "/v1/agent-sessions/{sessionId}/turns",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 100
        }
      }
    ],
    "body": null
  },
  {
    "name": "answerAgentPrompt",
    "method": "POST",
    "path": "/v1/agent-sessions/{sessionId}/answer",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.approve",
    "activity": "agent_prompt_answered",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/AnswerAgentPromptRequest"
      }
    }
  },
  {
    "name": "interruptAgentTurn",
    "method": "POST",
    "path": "/v1/agent-sessions/{sessionId}/interrupt",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "agent_session.send",
    "activity": "agent_turn_interrupted",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "updateUsageGuardrails",
    "method": "PATCH",
    "path": "/v1/orgs/{orgId}/subscription/usage-guardrails",
    "auth": [
      "session"
    ],
    "permission": "usage_guardrails.manage",
    "activity": "usage_guardrails_updated",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateUsageGuardrailsRequest"
      }
    }
  },
  {
    "name": "updateProjectUsageGuardrails",
    "method": "PATCH",
    "path": "/v1/orgs/{orgId}/projects/{projectId}/usage-guardrails",
    "auth": [
      "session"
    ],
    "permission": "usage_guardrails.manage",
    "activity": "usage_guardrails_updated",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateProjectUsageGuardrailsRequest"
      }
    }
  },
  {
    "name": "listSandboxes",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/sandboxes",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "endUserId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 512,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "projectId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "name",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 100,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "createdBy",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "q",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 100,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "metadata",
        "required": false,
        "schema": {
          "type": "object",
          "propertyNames": {
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "pattern": "^[^\\x00]*$"
          },
          "additionalProperties": {
            "anyOf": [
              {
                "type": "string",
                "minLength": 0,
                "maxLength": 1024,
                "pattern": "^[^\\x00]*$"
              },
              {
                "type": "number"
              },
              {
                "type": "boolean"
              }
            ]
          },
          "maxProperties": 24
        }
      },
      {
        "name": "status",
        "required": false,
        "schema": {
          "minItems": 1,
          "maxItems": 8,
          "type": "array",
          "items": {
            "type": "string",
            "enum": [
              "provisioning",
              "running",
              "ready",
              "sleeping",
              "stopped",
              "waking",
              "failed",
              "destroying"
            ]
          }
        }
      },
      {
        "name": "sort",
        "required": false,
        "schema": {
          "type": "string",
          "enum": [
            "createdAt",
            "-createdAt",
            "lastActiveAt",
            "-lastActiveAt"
          ]
        }
      }
    ],
    "body": null
  },
  {
    "name": "countSandboxes",
    "method": "GET",
    "path": "/v1/orgs/{orgId}/sandboxes/counts",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "endUserId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 512,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "projectId",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "name",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 100,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "createdBy",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      {
        "name": "q",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 100,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "metadata",
        "required": false,
        "schema": {
          "type": "object",
          "propertyNames": {
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "pattern": "^[^\\x00]*$"
          },
          "additionalProperties": {
            "anyOf": [
              {
                "type": "string",
                "minLength": 0,
                "maxLength": 1024,
                "pattern": "^[^\\x00]*$"
              },
              {
                "type": "number"
              },
              {
                "type": "boolean"
              }
            ]
          },
          "maxProperties": 24
        }
      }
    ],
    "body": null
  },
  {
    "name": "createSandbox",
    "method": "POST",
    "path": "/v1/orgs/{orgId}/sandboxes",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.create",
    "activity": "sandbox_created",
    "status": 201,
    "idempotent": true,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateSandboxRequest"
      }
    }
  },
  {
    "name": "getSandbox",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "execInSandbox",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/exec",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": "sandbox_exec",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/ExecInSandboxRequest"
      }
    }
  },
  {
    "name": "startProcess",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/processes",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": "sandbox_process_started",
    "status": 201,
    "idempotent": true,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/StartProcessRequest"
      }
    }
  },
  {
    "name": "listProcesses",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/processes",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getProcess",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/processes/{processId}",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "readProcessOutput",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/processes/{processId}/output",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "since",
        "required": false,
        "schema": {
          "type": "string",
          "pattern": "^[0-9]{1,16}(?:\\.[0-9]{1,16})?$"
        }
      },
      {
        "name": "tail",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 0,
          "maximum": 262144
        }
      }
    ],
    "body": null
  },
  {
    "name": "writeProcessInput",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/processes/{processId}/stdin",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/WriteProcessInputRequest"
      }
    }
  },
  {
    "name": "signalProcess",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/processes/{processId}/signal",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": "sandbox_process_signaled",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/SignalProcessRequest"
      }
    }
  },
  {
    "name": "resizeProcess",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/processes/{processId}/size",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/ResizeProcessRequest"
      }
    }
  },
  {
    "name": "removeProcess",
    "method": "DELETE",
    "path": "/v1/sandboxes/{sandboxId}/processes/{processId}",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.exec",
    "activity": "sandbox_process_removed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getSshAccess",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/ssh",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.connect",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "createPreview",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/previews",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.preview",
    "activity": "preview_link_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreatePreviewRequest"
      }
    }
  },
  {
    "name": "listPreviews",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/previews",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.preview",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "limit",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000
        }
      },
      {
        "name": "after",
        "required": false,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      }
    ],
    "body": null
  },
  {
    "name": "revokePreview",
    "method": "DELETE",
    "path": "/v1/sandboxes/{sandboxId}/previews/{previewId}",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.preview.share",
    "activity": "preview_link_revoked",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "listFiles",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/files",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "path",
        "required": false,
        "schema": {
          "default": "",
          "type": "string",
          "minLength": 0,
          "maxLength": 4096,
          "pattern": "^[^\\x00]*$"
        }
      }
    ],
    "body": null
  },
  {
    "name": "snapshotFiles",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/files/snapshot",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "path",
        "required": false,
        "schema": {
          "default": "",
          "type": "string",
          "minLength": 0,
          "maxLength": 4096,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "depth",
        "required": false,
        "schema": {
          "type": "integer"
        }
      }
    ],
    "body": null
  },
  {
    "name": "watchFiles",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/files/changes",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "path",
        "required": false,
        "schema": {
          "default": "",
          "type": "string",
          "minLength": 0,
          "maxLength": 4096,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "recursive",
        "required": false,
        "schema": {
          "default": "false",
          "type": "string",
          "enum": [
            "true",
            "false"
          ]
        }
      },
      {
        "name": "cursor",
        "required": false,
        "schema": {
          "examples": [
            "9f86d081884c7d65.12"
          ],
          "type": "string",
          "pattern": "^[0-9a-f]{16}\\.(?:0|[1-9][0-9]{0,14})$"
        }
      }
    ],
    "body": null
  },
  {
    "name": "statFile",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/files/stat",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "path",
        "required": true,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 4096,
          "pattern": "^[^\\x00]*$"
        }
      }
    ],
    "body": null
  },
  {
    "name": "readFile",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/file",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "path",
        "required": true,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 4096,
          "pattern": "^[^\\x00]*$"
        }
      }
    ],
    "body": null
  },
  {
    "name": "writeFile",
    "method": "PUT",
    "path": "/v1/sandboxes/{sandboxId}/file",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.write",
    "activity": "sandbox_file_written",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/WriteFileRequest"
      }
    }
  },
  {
    "name": "deleteFile",
    "method": "DELETE",
    "path": "/v1/sandboxes/{sandboxId}/file",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.write",
    "activity": "sandbox_file_deleted",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "path",
        "required": true,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 4096,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "recursive",
        "required": false,
        "schema": {
          "default": "false",
          "type": "string",
          "enum": [
            "true",
            "false"
          ]
        }
      }
    ],
    "body": null
  },
  {
    "name": "moveFile",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/files/move",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.write",
    "activity": "sandbox_file_moved",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/MoveFileRequest"
      }
    }
  },
  {
    "name": "setFileMode",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/files/mode",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.write",
    "activity": "sandbox_file_mode_changed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/SetFileModeRequest"
      }
    }
  },
  {
    "name": "createFolder",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/files/folder",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.write",
    "activity": "sandbox_folder_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateFolderRequest"
      }
    }
  },
  {
    "name": "downloadFile",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/file/content",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "path",
        "required": true,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 4096,
          "pattern": "^[^\\x00]*$"
        }
      }
    ],
    "body": null
  },
  {
    "name": "uploadFile",
    "method": "PUT",
    "path": "/v1/sandboxes/{sandboxId}/file/content",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.write",
    "activity": "sandbox_file_written",
    "status": 200,
    "idempotent": false,
    "upload": true,
    "query": [
      {
        "name": "path",
        "required": true,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 4096,
          "pattern": "^[^\\x00]*$"
        }
      },
      {
        "name": "ifUnchanged",
        "required": false,
        "schema": {
          "type": "string",
          "pattern": "^(?:absent|[0-9a-f]{64})$"
        }
      },
      {
        "name": "mode",
        "required": false,
        "schema": {
          "type": "string",
          "pattern": "^0?[0-7]{3}$",
          "examples": [
            "0644",
            "755"
          ]
        }
      },
      {
        "name": "offset",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 0
        }
      }
    ],
    "body": null
  },
  {
    "name": "createFileLink",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/files/links",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.files.read",
    "activity": "sandbox_file_link_created",
    "status": 201,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateFileLinkRequest"
      }
    }
  },
  {
    "name": "sleepSandbox",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/sleep",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.stop",
    "activity": "sandbox_sleep_requested",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "stopSandbox",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/stop",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.stop",
    "activity": "sandbox_sleep_requested",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "wakeSandbox",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/wake",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "sandbox.wake",
    "activity": "sandbox_wake_requested",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "resumeSandbox",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/resume",
    "auth": [
      "session",
      "api_key",
      "agent_token"
    ],
    "permission": "sandbox.wake",
    "activity": "sandbox_wake_requested",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "resizeSandbox",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/resize",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.resize",
    "activity": "sandbox_resize_requested",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/ResizeSandboxRequest"
      }
    }
  },
  {
    "name": "setEgress",
    "method": "PUT",
    "path": "/v1/sandboxes/{sandboxId}/egress",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.create",
    "activity": "sandbox_egress_changed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/EgressRequest"
      }
    }
  },
  {
    "name": "updateSandbox",
    "method": "PATCH",
    "path": "/v1/sandboxes/{sandboxId}",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.create",
    "activity": "sandbox_updated",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateSandboxRequest"
      }
    }
  },
  {
    "name": "listVariables",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/variables",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "replaceVariables",
    "method": "PUT",
    "path": "/v1/sandboxes/{sandboxId}/variables",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.variables.write",
    "activity": "sandbox_variables_changed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/ReplaceVariablesRequest"
      }
    }
  },
  {
    "name": "updateVariables",
    "method": "PATCH",
    "path": "/v1/sandboxes/{sandboxId}/variables",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.variables.write",
    "activity": "sandbox_variables_changed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/UpdateVariablesRequest"
      }
    }
  },
  {
    "name": "renewSandbox",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/renew",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.stop",
    "activity": "sandbox_renewed",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getLiveMetrics",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/metrics/live",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "getMetricsHistory",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/metrics/history",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [
      {
        "name": "windowSeconds",
        "required": false,
        "schema": {
          "type": "integer",
          "minimum": 10,
          "maximum": 86400
        }
      }
    ],
    "body": null
  },
  {
    "name": "getDiagnostics",
    "method": "GET",
    "path": "/v1/sandboxes/{sandboxId}/diagnostics",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.read",
    "activity": null,
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "sampleMetrics",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/metrics/sample",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.metrics",
    "activity": "sandbox_metrics_sample",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  },
  {
    "name": "destroySandbox",
    "method": "POST",
    "path": "/v1/sandboxes/{sandboxId}/destroy",
    "auth": [
      "session",
      "api_key"
    ],
    "permission": "sandbox.destroy",
    "activity": "sandbox_destroy_requested",
    "status": 200,
    "idempotent": false,
    "upload": false,
    "query": [],
    "body": null
  }
] as const;

export const SCHEMAS = {
  "Agent": {
    "type": "string",
    "enum": [
      "agent_one",
      "agent_two"
    ],
    "description": "Coding agent of the sandbox. Required even if the caller runs a different agent."
  },
  "AgentApprovals": {
    "type": "string",
    "enum": [
      "ask",
      "never"
    ]
  },
  "AgentDecision": {
    "type": "string",
    "enum": [
      "accept",
      "decline",
      "cancel"
    ],
    "description": "`accept`: the agent carries out the action. `decline`: it does not, and goes on. `cancel`: it does not, and the turn ends as `canceled`."
  },
  "AgentTokenAccess": {
    "type": "string",
    "enum": [
      "read_only",
      "read_send"
    ],
    "description": "`read_only`: list agent sessions and read replies. `read_send`: also create and recover agent sessions, send messages and interrupt."
  },
  "AnswerAgentPromptRequest": {
    "type": "object",
    "properties": {
      "requestId": {
        "anyOf": [
          {
            "type": "number"
          },
          {
            "type": "string",
            "maxLength": 200
          }
        ],
        "description": "Id of the pending approval, of the same type and value."
      },
      "decision": {
        "$ref": "#/components/schemas/AgentDecision"
      }
    },
    "required": [
      "requestId",
      "decision"
    ],
    "additionalProperties": false
  },
  "ClaimDomainRequest": {
    "type": "object",
    "properties": {
      "domain": {
        "type": "string",
        "maxLength": 236,
        "pattern": "^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+(?:[a-z]|[a-z][a-z0-9-]{0,61}[a-z0-9])$",
        "description": "Domain of mail addresses, without its subdomains; converted to lower case."
      }
    },
    "required": [
      "domain"
    ],
    "additionalProperties": false
  },
  "CreateAgentTokenRequest": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      },
      "expiresInDays": {
        "type": "integer",
        "minimum": 1,
        "maximum": 365
      },
      "access": {
        "$ref": "#/components/schemas/AgentTokenAccess"
      },
      "canApprove": {
        "type": "boolean"
      },
      "canWake": {
        "type": "boolean"
      }
    },
    "required": [
      "name"
    ],
    "additionalProperties": false,
    "description": "`read_only` cannot be combined with `canApprove` or `canWake`."
  },
  "CreateApiKeyRequest": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      },
      "expiresInDays": {
        "description": "Lifetime in days. null or absent: the key does not expire.",
        "anyOf": [
          {
            "type": "integer",
            "minimum": 1,
            "maximum": 365
          },
          {
            "type": "null"
          }
        ]
      },
      "scopes": {
        "description": "Permissions of the key, limited to the creator's current role. null or absent: all. Empty: none.",
        "anyOf": [
          {
            "maxItems": 33,
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Permission"
            }
          },
          {
            "type": "null"
          }
        ]
      }
    },
    "required": [
      "name"
    ],
    "additionalProperties": false
  },
  "CreateCheckoutRequest": {
    "type": "object",
    "properties": {
      "plan": {
        "type": "string",
        "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"
      }
    },
    "required": [
      "plan"
    ],
    "additionalProperties": false
  },
  "CreateFileLinkRequest": {
    "type": "object",
    "properties": {
      "path": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\x00]*$",
        "description": "Relative paths are relative to /code. `.` and `..` are resolved lexically, before symbolic links are followed. At most 4095 bytes in total."
      },
      "action": {
        "description": "`write` also requires the permission `sandbox.files.write`.",
        "$ref": "#/components/schemas/FileLinkAction"
      },
      "expiresInSeconds": {
        "default": 900,
        "type": "integer",
        "minimum": 60,
        "maximum": 86400
      },
      "maxBytes": {
        "description": "Only with `write`: a larger upload is 413 `file_too_large`. By default unlimited.",
        "type": "integer",
        "minimum": 0
      },
      "overwrite": {
        "description": "Only with `write`. `false`: an existing file is 409 `file_exists`. By default true.",
        "type": "boolean"
      },
      "fileName": {
        "description": "Only with `read`: name of the download. By default the last segment of the path.",
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f/\\\\]*$",
        "examples": [
          "report.pdf"
        ]
      }
    },
    "required": [
      "path",
      "action"
    ],
    "additionalProperties": false,
    "description": "The fields of the other action are refused."
  },
  "CreateFolderRequest": {
    "type": "object",
    "properties": {
      "path": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\x00]*$",
        "description": "Relative paths are relative to /code. `.` and `..` are resolved lexically, before symbolic links are followed. At most 4095 bytes in total."
      }
    },
    "required": [
      "path"
    ],
    "additionalProperties": false
  },
  "CreateInvitationRequest": {
    "type": "object",
    "properties": {
      "email": {
        "type": "string",
        "maxLength": 254,
        "format": "email",
        "pattern": "^(?:[A-Za-z0-9_'+\\-]+\\.)*[A-Za-z0-9_'+\\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
        "description": "Email address; converted to lower case."
      },
      "role": {
        "$ref": "#/components/schemas/Role"
      }
    },
    "required": [
      "email"
    ],
    "additionalProperties": false
  },
  "CreateOrgRequest": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      }
    },
    "required": [
      "name"
    ],
    "additionalProperties": false
  },
  "CreatePreviewRequest": {
    "type": "object",
    "properties": {
      "port": {
        "type": "integer",
        "minimum": 1,
        "maximum": 65535,
        "description": "TCP port in the sandbox, except the port of Berth's guest daemon."
      },
      "audience": {
        "default": "team",
        "description": "`public` also requires the permission `sandbox.preview.share`.",
        "$ref": "#/components/schemas/PreviewAudience"
      },
      "expiresInSeconds": {
        "default": 86400,
        "type": "integer",
        "minimum": 1,
        "maximum": 2592000
      },
      "endUserId": {
        "type": "string",
        "minLength": 1,
        "maxLength": 512,
        "pattern": "^[^\\x00]*$"
      },
      "label": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      },
      "embeddable": {
        "default": false,
        "description": "Allows pages of other origins, other previews included, to show the app in a frame.",
        "type": "boolean"
      }
    },
    "required": [
      "port"
    ],
    "additionalProperties": false
  },
  "CreateProjectRequest": {
    "type": "object",
    "properties": {
      "name": {
        "description": "Generated by the server when absent.",
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      },
      "useCase": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[^\\x00]*$",
        "description": "Free text. `external`: the sandboxes serve end users of the operator's product; only such projects can have ephemeral sandboxes. Another spelling of `external` is rejected."
      },
      "defaultProfile": {
        "anyOf": [
          {
            "$ref": "#/components/schemas/Profile"
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultPersistencePolicy": {
        "anyOf": [
          {
            "$ref": "#/components/schemas/PersistencePolicy"
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultRepository": {
        "anyOf": [
          {
            "type": "string",
            "description": "`owner/repo` on the service's git host, or the full https URL of a repository."
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultBranch": {
        "anyOf": [
          {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^[^-./\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\](?:[^\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\]*[^./\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\])?$",
            "description": "Name of a git branch. Accepted by `git check-ref-format --branch`: not `HEAD` or `@`, and without `..`, `/.`, `//`, `@{`, Unicode white space and parts ending with `.lock`."
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultIdleMinutes": {
        "description": "Minutes until idle `sleep_resume` sandboxes sleep; 0: never; null: 30.",
        "anyOf": [
          {
            "type": "integer",
            "minimum": 0,
            "maximum": 43200
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultEgress": {
        "description": "Egress policy of new sandboxes without `egress`; null: open. Running sandboxes keep theirs.",
        "anyOf": [
          {
            "$ref": "#/components/schemas/EgressRequest"
          },
          {
            "type": "null"
          }
        ]
      },
      "wakeOnUse": {
        "description": "Whether a command, file call, preview, connection (terminal, tunnel), new agent session or message to a stopped sandbox wakes it.",
        "type": "boolean"
      },
      "agentApprovals": {
        "description": "Whether agents ask for approval before commands and changes. `never`: they carry out everything; the sandbox is the boundary; setting it also requires the permission `agent_approvals.disable`. Takes effect when a session starts or recovers; `ask` reaches running sessions within 2 s.",
        "$ref": "#/components/schemas/AgentApprovals"
      },
      "metadata": {
        "description": "Labels; values are strings, numbers or booleans; at most 24 keys. Replaces all previous labels.",
        "type": "object",
        "propertyNames": {
          "type": "string",
          "minLength": 1,
          "maxLength": 128,
          "pattern": "^[^\\x00]*$"
        },
        "additionalProperties": {
          "anyOf": [
            {
              "type": "string",
              "minLength": 0,
              "maxLength": 1024,
              "pattern": "^[^\\x00]*$"
            },
            {
              "type": "number"
            },
            {
              "type": "boolean"
            }
          ]
        },
        "maxProperties": 24
      },
      "repoCredentials": {
        "description": "Encrypted at rest, never returned; null deletes them.",
        "anyOf": [
          {
            "$ref": "#/components/schemas/RepoCredentials"
          },
          {
            "type": "null"
          }
        ]
      },
      "sandboxMachineHourLimit": {
        "type": "null",
        "description": "Not settable here: org admins set it with the usage-guardrails operation. null has no effect.",
        "anyOf": [
          {
            "type": "number"
          },
          {
            "type": "null"
          }
        ]
      }
    }
  },
  "CreateSandboxRequest": {
    "type": "object",
    "properties": {
      "agent": {
        "$ref": "#/components/schemas/Agent"
      },
      "projectId": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "Id of a project of this org."
      },
      "name": {
        "description": "Generated by the server when absent.",
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      },
      "repository": {
        "description": "Cloned into `/code`: `owner/repo` on the service's git host, or the full https URL of a repository. Absent: the project's default; null: no repository.",
        "anyOf": [
          {
            "type": "string",
            "description": "`owner/repo` on the service's git host, or the full https URL of a repository."
          },
          {
            "type": "null"
          }
        ]
      },
      "branch": {
        "description": "Branch to clone. Absent: the project's default branch if the repository is also the project's default; otherwise, or with null: the repository's default branch. Accepted by `git check-ref-format --branch`: not `HEAD` or `@`, and without `..`, `/.`, `//`, `@{`, Unicode white space and parts ending with `.lock`.",
        "anyOf": [
          {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^[^-./\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\](?:[^\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\]*[^./\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\])?$",
            "description": "Name of a git branch. Accepted by `git check-ref-format --branch`: not `HEAD` or `@`, and without `..`, `/.`, `//`, `@{`, Unicode white space and parts ending with `.lock`."
          },
          {
            "type": "null"
          }
        ]
      },
      "profile": {
        "description": "When absent: inferred from `machineSize`, else the project's default.",
        "$ref": "#/components/schemas/Profile"
      },
      "machineSize": {
        "description": "Overrides the machine size that the profile starts with.",
        "$ref": "#/components/schemas/MachineSize"
      },
      "sshPublicKey": {
        "writeOnly": true,
        "description": "One OpenSSH public key line: `<key_type> <key_material> <comment>`, of one of the types ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, sk-ssh-ed25519@openssh.com, sk-ecdsa-sha2-nistp256@openssh.com. Its owner can sign in as `berth` over a tunnel to port 22.",
        "type": "string",
        "maxLength": 16384
      },
      "egress": {
        "description": "Absent: the project's `defaultEgress`, else open.",
        "$ref": "#/components/schemas/EgressRequest"
      },
      "endUserId": {
        "type": "string",
        "minLength": 1,
        "maxLength": 512,
        "pattern": "^[^\\x00]*$",
        "description": "Identifies the operator's end user. Opaque: never parsed, not assumed unique; usage is grouped by it."
      },
      "metadata": {
        "type": "object",
        "propertyNames": {
          "type": "string",
          "minLength": 1,
          "maxLength": 128,
          "pattern": "^[^\\x00]*$"
        },
        "additionalProperties": {
          "anyOf": [
            {
              "type": "string",
              "minLength": 0,
              "maxLength": 1024,
              "pattern": "^[^\\x00]*$"
            },
            {
              "type": "number"
            },
            {
              "type": "boolean"
            }
          ]
        },
        "maxProperties": 24,
        "description": "Labels; values are strings, numbers or booleans; at most 24 keys."
      },
      "persistencePolicy": {
        "description": "When absent: the project's default, else `sleep_resume`.",
        "$ref": "#/components/schemas/PersistencePolicy"
      },
      "mode": {
        "description": "`ephemeral`: the sandbox is destroyed when its time to live expires. Allowed only in projects with `useCase` `external`; requires `ttlSeconds`.",
        "type": "string",
        "enum": [
          "ephemeral"
        ]
      },
      "ttlSeconds": {
        "description": "Time to live in seconds, counted from the create. Required with `mode`, rejected without it; the plan may set a lower limit.",
        "type": "integer",
        "minimum": 1,
        "maximum": 86400
      },
      "idleMinutes": {
        "anyOf": [
          {
            "type": "integer",
            "minimum": 0,
            "maximum": 43200,
            "description": "Minutes without use until a `sleep_resume` sandbox sleeps by itself; 0: never; null: the project's."
          },
          {
            "type": "null"
          }
        ]
      },
      "getOrCreate": {
        "$ref": "#/components/schemas/CreateSandboxRequestGetOrCreate"
      }
    },
    "required": [
      "agent",
      "projectId"
    ],
    "additionalProperties": false
  },
  "CreateSandboxRequestGetOrCreate": {
    "description": "Returns the project's sandbox of this key if it has one, and wakes it; otherwise creates it. Concurrent requests get one sandbox. A sandbox that is deleted, or died without a disk, gets a successor. `name`, `metadata` and `idleMinutes` apply to a create only; any other field that differs from the create of the sandbox is 409 `sandbox_differs`. Also requires `sandbox.wake`; excludes `Idempotency-Key`.",
    "type": "object",
    "properties": {
      "key": {
        "type": "string",
        "minLength": 1,
        "maxLength": 512,
        "pattern": "^[^\\x00]*$",
        "description": "Unique in the project, such as the id of your end user."
      }
    },
    "required": [
      "key"
    ],
    "additionalProperties": false
  },
  "EgressRequest": {
    "type": "object",
    "properties": {
      "mode": {
        "type": "string",
        "enum": [
          "open",
          "none",
          "allow"
        ],
        "description": "`open`: all public addresses. `none`: nothing. `allow`: only `names` and `ranges`."
      },
      "names": {
        "maxItems": 64,
        "type": "array",
        "items": {
          "description": "DNS name such as `example.com`, or `*.example.com` for every name below it.",
          "type": "string",
          "minLength": 1,
          "maxLength": 254
        }
      },
      "ranges": {
        "maxItems": 64,
        "type": "array",
        "items": {
          "description": "IPv4 range such as `198.51.100.0/24`, or an IPv4 address.",
          "type": "string",
          "minLength": 1,
          "maxLength": 18
        }
      },
      "ports": {
        "default": [],
        "description": "TCP and UDP ports of the allowed destinations; none: every port, and ICMP.",
        "maxItems": 32,
        "type": "array",
        "items": {
          "type": "integer",
          "minimum": 1,
          "maximum": 65535
        }
      }
    },
    "required": [
      "mode"
    ],
    "additionalProperties": false,
    "description": "Destinations that the sandbox may contact, enforced outside of it. Private and special ranges are always closed. A name is allowed with the addresses that it resolves to."
  },
  "ExecInSandboxRequest": {
    "type": "object",
    "properties": {
      "command": {
        "type": "string",
        "minLength": 1,
        "maxLength": 1048576,
        "pattern": "^[^\\x00]*$",
        "description": "Command for /bin/sh."
      },
      "timeoutSeconds": {
        "default": 120,
        "description": "Timeout; the command is killed when it expires.",
        "type": "integer",
        "minimum": 1,
        "maximum": 600
      },
      "cwd": {
        "description": "Working directory, by default /code. A relative path is relative to /code.",
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\x00]*$"
      },
      "env": {
        "type": "object",
        "propertyNames": {
          "type": "string",
          "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,255}$"
        },
        "additionalProperties": {
          "type": "string",
          "minLength": 0,
          "maxLength": 65536,
          "pattern": "^[^\\x00]*$"
        },
        "maxProperties": 256,
        "description": "Environment variables, in addition to those of every command; at most 256 with together 65536 characters."
      },
      "user": {
        "description": "User that runs the command, by default the user of the sandbox; root for all permissions.",
        "type": "string",
        "pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,31}$"
      },
      "stdin": {
        "description": "Standard input of the command, by default empty.",
        "type": "string",
        "minLength": 0,
        "maxLength": 65536,
        "pattern": "^[^\\x00]*$"
      }
    },
    "required": [
      "command"
    ],
    "additionalProperties": false
  },
  "FileLinkAction": {
    "type": "string",
    "enum": [
      "read",
      "write"
    ],
    "description": "`read`: GET sends the file. `write`: PUT writes it."
  },
  "MachineSize": {
    "type": "string",
    "enum": [
      "small",
      "medium",
      "large",
      "xlarge"
    ],
    "description": "Size of a sandbox: vCPUs, memory and disk."
  },
  "MoveFileRequest": {
    "type": "object",
    "properties": {
      "from": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\x00]*$",
        "description": "Relative paths are relative to /code. `.` and `..` are resolved lexically, before symbolic links are followed. At most 4095 bytes in total."
      },
      "to": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\x00]*$",
        "description": "The new path, with the name. Its folder must exist."
      },
      "replace": {
        "default": false,
        "description": "Replaces an existing file, or an empty folder.",
        "type": "boolean"
      }
    },
    "required": [
      "from",
      "to"
    ],
    "additionalProperties": false
  },
  "Permission": {
    "type": "string",
    "enum": [
      "org.read",
      "org.update",
      "org.members.manage",
      "org.owners.manage",
      "api_keys.manage",
      "activity.read",
      "billing.read",
      "billing.manage",
      "usage_guardrails.manage",
      "project.read",
      "project.create",
      "project.update",
      "project.delete",
      "sandbox.read",
      "sandbox.create",
      "sandbox.exec",
      "sandbox.stop",
      "sandbox.wake",
      "sandbox.resize",
      "sandbox.metrics",
      "sandbox.destroy",
      "sandbox.preview",
      "sandbox.preview.share",
      "sandbox.files.read",
      "sandbox.files.write",
      "sandbox.variables.write",
      "sandbox.connect",
      "agent_session.read",
      "agent_session.send",
      "agent_session.approve",
      "agent_credentials.manage",
      "agent_approvals.disable",
      "hosts.read"
    ],
    "description": "A permission. More may be added; clients must accept unknown values."
  },
  "PersistencePolicy": {
    "type": "string",
    "enum": [
      "always_on",
      "sleep_resume"
    ],
    "description": "`always_on`: never sleeps by itself and is billed continuously. `sleep_resume`: sleeps when idle, keeps its disk, and is billed while awake."
  },
  "PreviewAudience": {
    "type": "string",
    "enum": [
      "team",
      "public"
    ],
    "description": "Who can open the link. `team`: signed-in members of the sandbox's org. `public`: anyone who has the URL."
  },
  "Profile": {
    "type": "string",
    "enum": [
      "auto",
      "agent-small",
      "agent-standard",
      "build-heavy",
      "browser-heavy",
      "repo-large",
      "long-running"
    ],
    "description": "Intended use of a sandbox; selects its initial machine size. `auto` follows measured use."
  },
  "PutAgentCredentialsRequest": {
    "type": "object",
    "properties": {
      "apiKey": {
        "type": "string",
        "minLength": 1,
        "maxLength": 1000,
        "pattern": "^[\\x21-\\x7e]*$",
        "writeOnly": true,
        "description": "Key of the model provider. Encrypted at rest, never returned."
      },
      "endpoint": {
        "description": "Base URL of the provider, from the list of the operator; default: the first of the list.",
        "type": "string",
        "maxLength": 500
      }
    },
    "required": [
      "apiKey"
    ],
    "additionalProperties": false
  },
  "ReplaceVariablesRequest": {
    "type": "object",
    "properties": {
      "variables": {
        "type": "object",
        "propertyNames": {
          "type": "string",
          "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,255}$"
        },
        "additionalProperties": {
          "type": "string",
          "minLength": 0,
          "maxLength": 65536,
          "pattern": "^[^\\x00]*$"
        },
        "maxProperties": 256,
        "description": "At most 256 values by name, with together 65536 bytes of UTF-8."
      }
    },
    "required": [
      "variables"
    ],
    "additionalProperties": false
  },
  "RepoCredentials": {
    "type": "object",
    "properties": {
      "username": {
        "type": "string",
        "minLength": 1,
        "maxLength": 8192,
        "pattern": "^[^:\\x00-\\x1f\\x7f-\\x9f]*$"
      },
      "token": {
        "type": "string",
        "minLength": 1,
        "maxLength": 8192,
        "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"
      }
    },
    "required": [
      "token"
    ],
    "additionalProperties": false,
    "writeOnly": true,
    "description": "A token, and a user name if the git host requires one. Encrypted at rest, never returned."
  },
  "ResizeProcessRequest": {
    "type": "object",
    "properties": {
      "cols": {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000
      },
      "rows": {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000
      }
    },
    "required": [
      "cols",
      "rows"
    ],
    "additionalProperties": false
  },
  "ResizeSandboxRequest": {
    "type": "object",
    "properties": {
      "vcpu": {
        "type": "integer",
        "minimum": 1,
        "maximum": 1024
      },
      "memoryGb": {
        "type": "integer",
        "minimum": 1,
        "maximum": 65536
      },
      "diskGb": {
        "description": "A disk cannot shrink.",
        "type": "integer",
        "minimum": 1,
        "maximum": 1048576
      }
    },
    "additionalProperties": false,
    "minProperties": 1,
    "description": "Absent fields keep their value. At least one field is required."
  },
  "Role": {
    "type": "string",
    "enum": [
      "owner",
      "admin",
      "member",
      "operator",
      "viewer"
    ],
    "description": "Role of a member of an org, from most to least privileged."
  },
  "SendAgentMessageRequest": {
    "type": "object",
    "properties": {
      "text": {
        "type": "string",
        "minLength": 1,
        "maxLength": 131072,
        "pattern": "^[^\\x00]*$",
        "description": "Message to the agent."
      },
      "requestKey": {
        "description": "Makes a resend of the same text with the same credential return the same turn.",
        "type": "string",
        "pattern": "^[A-Za-z0-9._:-]{8,128}$"
      }
    },
    "required": [
      "text"
    ],
    "additionalProperties": false
  },
  "SetFileModeRequest": {
    "type": "object",
    "properties": {
      "path": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\x00]*$",
        "description": "Relative paths are relative to /code. `.` and `..` are resolved lexically, before symbolic links are followed. At most 4095 bytes in total."
      },
      "mode": {
        "type": "string",
        "pattern": "^0?[0-7]{3}$",
        "examples": [
          "0644",
          "755"
        ],
        "description": "Permission bits in octal, such as `0755`. Set-user-ID, set-group-ID and sticky are cleared."
      }
    },
    "required": [
      "path",
      "mode"
    ],
    "additionalProperties": false
  },
  "SignalProcessRequest": {
    "type": "object",
    "properties": {
      "signal": {
        "default": "SIGTERM",
        "type": "string",
        "enum": [
          "SIGHUP",
          "SIGINT",
          "SIGQUIT",
          "SIGKILL",
          "SIGUSR1",
          "SIGUSR2",
          "SIGTERM",
          "SIGCONT",
          "SIGTSTP",
          "SIGWINCH"
        ]
      }
    },
    "additionalProperties": false
  },
  "StartProcessRequest": {
    "type": "object",
    "properties": {
      "command": {
        "description": "Command for /bin/sh.",
        "type": "string",
        "minLength": 1,
        "maxLength": 1048576,
        "pattern": "^[^\\x00]*$"
      },
      "argv": {
        "description": "A program and its arguments, instead of `command`.",
        "minItems": 1,
        "maxItems": 1024,
        "type": "array",
        "items": {
          "type": "string",
          "minLength": 0,
          "maxLength": 131071,
          "pattern": "^[^\\x00]*$"
        }
      },
      "cwd": {
        "description": "Working directory, by default /code. A relative path is relative to /code.",
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\x00]*$"
      },
      "env": {
        "type": "object",
        "propertyNames": {
          "type": "string",
          "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,255}$"
        },
        "additionalProperties": {
          "type": "string",
          "minLength": 0,
          "maxLength": 65536,
          "pattern": "^[^\\x00]*$"
        },
        "maxProperties": 256,
        "description": "Environment variables, in addition to those of every command; at most 256 with together 65536 characters."
      },
      "user": {
        "description": "User that runs the command, by default the user of the sandbox; root for all permissions.",
        "type": "string",
        "pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,31}$"
      },
      "tty": {
        "default": false,
        "description": "Runs in a terminal, which merges stdout and stderr into `output`.",
        "type": "boolean"
      },
      "cols": {
        "default": 80,
        "type": "integer",
        "minimum": 1,
        "maximum": 1000
      },
      "rows": {
        "default": 24,
        "type": "integer",
        "minimum": 1,
        "maximum": 1000
      },
      "stdin": {
        "default": false,
        "description": "Whether input is written later; otherwise it is empty.",
        "type": "boolean"
      },
      "name": {
        "description": "A label; need not be unique.",
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[^\\x00]*$"
      },
      "keepAwake": {
        "default": false,
        "description": "Whether the sandbox stays awake while the process runs.",
        "type": "boolean"
      },
      "timeoutSeconds": {
        "description": "The process is killed when it expires, by default never.",
        "type": "integer",
        "minimum": 1,
        "maximum": 31536000
      },
      "outputBytes": {
        "default": 4194304,
        "description": "Of each stream, at least so many of the last bytes are kept.",
        "type": "integer",
        "minimum": 65536,
        "maximum": 67108864
      }
    },
    "additionalProperties": false,
    "description": "Exactly one of `command` and `argv`."
  },
  "UpdateMeRequest": {
    "type": "object",
    "properties": {
      "displayName": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      }
    },
    "required": [
      "displayName"
    ],
    "additionalProperties": false
  },
  "UpdateMemberRequest": {
    "type": "object",
    "properties": {
      "role": {
        "$ref": "#/components/schemas/Role"
      }
    },
    "required": [
      "role"
    ],
    "additionalProperties": false
  },
  "UpdateOrgRequest": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      }
    },
    "required": [
      "name"
    ],
    "additionalProperties": false
  },
  "UpdateProjectRequest": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      },
      "useCase": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[^\\x00]*$",
        "description": "Free text. `external`: the sandboxes serve end users of the operator's product; only such projects can have ephemeral sandboxes. Another spelling of `external` is rejected."
      },
      "defaultProfile": {
        "anyOf": [
          {
            "$ref": "#/components/schemas/Profile"
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultPersistencePolicy": {
        "anyOf": [
          {
            "$ref": "#/components/schemas/PersistencePolicy"
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultRepository": {
        "anyOf": [
          {
            "type": "string",
            "description": "`owner/repo` on the service's git host, or the full https URL of a repository."
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultBranch": {
        "anyOf": [
          {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^[^-./\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\](?:[^\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\]*[^./\\x00-\\x20\\x7f-\\xa0~^:?*\\[\\\\])?$",
            "description": "Name of a git branch. Accepted by `git check-ref-format --branch`: not `HEAD` or `@`, and without `..`, `/.`, `//`, `@{`, Unicode white space and parts ending with `.lock`."
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultIdleMinutes": {
        "description": "Minutes until idle `sleep_resume` sandboxes sleep; 0: never; null: 30.",
        "anyOf": [
          {
            "type": "integer",
            "minimum": 0,
            "maximum": 43200
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultEgress": {
        "description": "Egress policy of new sandboxes without `egress`; null: open. Running sandboxes keep theirs.",
        "anyOf": [
          {
            "$ref": "#/components/schemas/EgressRequest"
          },
          {
            "type": "null"
          }
        ]
      },
      "wakeOnUse": {
        "description": "Whether a command, file call, preview, connection (terminal, tunnel), new agent session or message to a stopped sandbox wakes it.",
        "type": "boolean"
      },
      "agentApprovals": {
        "description": "Whether agents ask for approval before commands and changes. `never`: they carry out everything; the sandbox is the boundary; setting it also requires the permission `agent_approvals.disable`. Takes effect when a session starts or recovers; `ask` reaches running sessions within 2 s.",
        "$ref": "#/components/schemas/AgentApprovals"
      },
      "metadata": {
        "description": "Labels; values are strings, numbers or booleans; at most 24 keys. Replaces all previous labels.",
        "type": "object",
        "propertyNames": {
          "type": "string",
          "minLength": 1,
          "maxLength": 128,
          "pattern": "^[^\\x00]*$"
        },
        "additionalProperties": {
          "anyOf": [
            {
              "type": "string",
              "minLength": 0,
              "maxLength": 1024,
              "pattern": "^[^\\x00]*$"
            },
            {
              "type": "number"
            },
            {
              "type": "boolean"
            }
          ]
        },
        "maxProperties": 24
      },
      "repoCredentials": {
        "description": "Encrypted at rest, never returned; null deletes them.",
        "anyOf": [
          {
            "$ref": "#/components/schemas/RepoCredentials"
          },
          {
            "type": "null"
          }
        ]
      },
      "sandboxMachineHourLimit": {
        "type": "null",
        "description": "Not settable here: org admins set it with the usage-guardrails operation. null has no effect.",
        "anyOf": [
          {
            "type": "number"
          },
          {
            "type": "null"
          }
        ]
      }
    }
  },
  "UpdateProjectUsageGuardrailsRequest": {
    "type": "object",
    "properties": {
      "sandboxMachineHourLimit": {
        "anyOf": [
          {
            "type": "number",
            "minimum": 0,
            "maximum": 100000000
          },
          {
            "type": "null"
          }
        ]
      }
    },
    "required": [
      "sandboxMachineHourLimit"
    ],
    "additionalProperties": false
  },
  "UpdateSandboxRequest": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\x00]*$"
      },
      "metadata": {
        "description": "Replaces all previous labels.",
        "type": "object",
        "propertyNames": {
          "type": "string",
          "minLength": 1,
          "maxLength": 128,
          "pattern": "^[^\\x00]*$"
        },
        "additionalProperties": {
          "anyOf": [
            {
              "type": "string",
              "minLength": 0,
              "maxLength": 1024,
              "pattern": "^[^\\x00]*$"
            },
            {
              "type": "number"
            },
            {
              "type": "boolean"
            }
          ]
        },
        "maxProperties": 24
      },
      "idleMinutes": {
        "anyOf": [
          {
            "type": "integer",
            "minimum": 0,
            "maximum": 43200,
            "description": "Minutes without use until a `sleep_resume` sandbox sleeps by itself; 0: never; null: the project's."
          },
          {
            "type": "null"
          }
        ]
      }
    },
    "additionalProperties": false,
    "minProperties": 1,
    "description": "Absent fields keep their value. At least one field is required."
  },
  "UpdateSsoRequest": {
    "type": "object",
    "properties": {
      "required": {
        "type": "boolean"
      }
    },
    "required": [
      "required"
    ],
    "additionalProperties": false
  },
  "UpdateUsageGuardrailsRequest": {
    "type": "object",
    "properties": {
      "sandboxMachineHourLimit": {
        "anyOf": [
          {
            "type": "number",
            "minimum": 0,
            "maximum": 100000000
          },
          {
            "type": "null"
          }
        ]
      },
      "sandboxOverageEnabled": {
        "type": "boolean"
      }
    },
    "additionalProperties": false,
    "minProperties": 1,
    "description": "Absent fields keep their value. At least one field is required."
  },
  "UpdateVariablesRequest": {
    "type": "object",
    "properties": {
      "variables": {
        "type": "object",
        "propertyNames": {
          "type": "string",
          "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,255}$"
        },
        "additionalProperties": {
          "anyOf": [
            {
              "type": "string",
              "minLength": 0,
              "maxLength": 65536,
              "pattern": "^[^\\x00]*$"
            },
            {
              "type": "null"
            }
          ]
        },
        "maxProperties": 256,
        "description": "Values by name; null removes the variable. Afterwards at most 256 with together 65536 bytes."
      }
    },
    "required": [
      "variables"
    ],
    "additionalProperties": false
  },
  "WriteFileRequest": {
    "type": "object",
    "properties": {
      "path": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\x00]*$",
        "description": "Relative paths are relative to /code. `.` and `..` are resolved lexically, before symbolic links are followed. At most 4095 bytes in total."
      },
      "content": {
        "type": "string",
        "description": "At most 2097152 bytes after decoding. With `base64`: standard alphabet with padding, no line breaks. Must not contain lone surrogates."
      },
      "encoding": {
        "default": "utf8",
        "description": "Encoding of `content`.",
        "type": "string",
        "enum": [
          "utf8",
          "base64"
        ]
      },
      "ifUnchanged": {
        "description": "`sha256` of the content that the write replaces: other content is 409 `file_changed`. `absent`: an existing file is 409 `file_exists`.",
        "type": "string",
        "pattern": "^(?:absent|[0-9a-f]{64})$"
      },
      "mode": {
        "description": "Permission bits in octal, such as `0644`. By default those of the replaced file; of a new file `0644`.",
        "type": "string",
        "pattern": "^0?[0-7]{3}$",
        "examples": [
          "0644",
          "755"
        ]
      }
    },
    "required": [
      "path",
      "content"
    ],
    "additionalProperties": false
  },
  "WriteProcessInputRequest": {
    "type": "object",
    "properties": {
      "data": {
        "default": "",
        "type": "string",
        "maxLength": 1048576
      },
      "encoding": {
        "default": "utf8",
        "description": "Encoding of `data`.",
        "type": "string",
        "enum": [
          "utf8",
          "base64"
        ]
      },
      "offset": {
        "description": "Bytes of the input before `data`, by default all so far.",
        "type": "integer",
        "minimum": 0
      },
      "end": {
        "default": false,
        "description": "Closes the input after `data`.",
        "type": "boolean"
      }
    },
    "additionalProperties": false
  }
} as const;

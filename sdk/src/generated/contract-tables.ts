// Written by npm run sdk:generate from contract/. Do not edit.

export const ERRORS = {
  "invalid_json": {
    "status": 400,
    "meaning": "The body is not JSON in UTF-8."
  },
  "invalid_request": {
    "status": 400,
    "meaning": "A parameter or field is missing, has a wrong value, or is unknown; the message names it and what is allowed."
  },
  "unknown_project": {
    "status": 400,
    "meaning": "projectId names no project of this org."
  },
  "ephemeral_not_allowed": {
    "status": 400,
    "meaning": "mode is allowed only in projects whose useCase is external."
  },
  "not_ephemeral": {
    "status": 400,
    "meaning": "Only an ephemeral sandbox can be renewed."
  },
  "wake_not_possible": {
    "status": 400,
    "meaning": "The sandbox is not asleep, or there is nothing to wake it from; the message says which."
  },
  "allocation_out_of_bounds": {
    "status": 400,
    "meaning": "The size asked for can never be: a disk that shrinks, or more than any host has; the message names the bound."
  },
  "file_path_invalid": {
    "status": 400,
    "meaning": "No file can have this path: it is too long, or leads through a ring of links."
  },
  "not_a_file": {
    "status": 400,
    "meaning": "At the path is a directory, a socket, a device or a FIFO, where a file is needed."
  },
  "not_a_directory": {
    "status": 400,
    "meaning": "At the path, or at a part of it, is a file, where a directory is needed."
  },
  "plan_not_for_sale": {
    "status": 400,
    "meaning": "The plan is not one that can be bought here; the message names those that can."
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
    "meaning": "This installation collects no payments; the message names what its operator has to set."
  },
  "auth_kind_not_allowed": {
    "status": 403,
    "meaning": "The route does not take this kind of token."
  },
  "org_access_denied": {
    "status": 403,
    "meaning": "The caller is not a member of the org that this belongs to, or its key is for another one."
  },
  "agent_token_access_denied": {
    "status": 403,
    "meaning": "The personal agent token belongs to another user."
  },
  "file_access_denied": {
    "status": 403,
    "meaning": "The sandbox's own user may not do this in the sandbox's file system; the message names the path."
  },
  "invitation_for_another": {
    "status": 403,
    "meaning": "The invitation was sent to another email address than the caller has."
  },
  "email_not_verified": {
    "status": 403,
    "meaning": "The caller's email address is not verified."
  },
  "permission_denied": {
    "status": 403,
    "meaning": "The caller lacks the permission that the message names."
  },
  "port_forbidden": {
    "status": 403,
    "meaning": "The port is one that the sandbox's own service holds."
  },
  "route_not_found": {
    "status": 404,
    "meaning": "There is no such path."
  },
  "org_not_found": {
    "status": 404,
    "meaning": "There is no such org."
  },
  "sandbox_not_found": {
    "status": 404,
    "meaning": "There is no such sandbox."
  },
  "project_not_found": {
    "status": 404,
    "meaning": "There is no such project, or it was deleted."
  },
  "api_key_not_found": {
    "status": 404,
    "meaning": "There is no such API key."
  },
  "agent_token_not_found": {
    "status": 404,
    "meaning": "There is no such personal agent token."
  },
  "invitation_not_found": {
    "status": 404,
    "meaning": "There is no such invitation, or its token is not valid any more."
  },
  "file_not_found": {
    "status": 404,
    "meaning": "There is nothing at the path in the sandbox."
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
    "meaning": "The path exists, but not with this method; see the header Allow."
  },
  "sandbox_state_conflict": {
    "status": 409,
    "meaning": "The sandbox is in a status in which this is not possible; the message names both."
  },
  "concurrent_sandbox_limit": {
    "status": 409,
    "meaning": "The org has as many sandboxes awake as its plan allows; the message names the limit."
  },
  "preview_link_limit": {
    "status": 409,
    "meaning": "The sandbox has as many public preview links outstanding as it may; the message names the limit."
  },
  "machine_hour_limit": {
    "status": 409,
    "meaning": "The machine hours of this billing period are used up; the message names the cap, whose it is and how to raise it."
  },
  "plan_already_bought": {
    "status": 409,
    "meaning": "The org pays for this plan already."
  },
  "project_has_sandboxes": {
    "status": 409,
    "meaning": "The project has sandboxes that are not deleted; the message says how many."
  },
  "last_owner": {
    "status": 409,
    "meaning": "The member is the only owner of the org."
  },
  "already_member": {
    "status": 409,
    "meaning": "The user is a member of the org already."
  },
  "invitation_not_pending": {
    "status": 409,
    "meaning": "The invitation was accepted or revoked, or has expired; the message says which."
  },
  "plan_limit": {
    "status": 409,
    "meaning": "More than the org's plan allows; the message names the limit."
  },
  "idempotency_key_conflict": {
    "status": 409,
    "meaning": "The Idempotency-Key was used for a create with another body."
  },
  "guest_disk_full": {
    "status": 409,
    "meaning": "The sandbox's disk is full; what was there of the file is untouched."
  },
  "file_system_error": {
    "status": 409,
    "meaning": "The sandbox's file system refused the call; the message has the name of its error."
  },
  "session_cap_exhausted": {
    "status": 410,
    "meaning": "A renewal would pass the longest session of the org's plan."
  },
  "payload_too_large": {
    "status": 413,
    "meaning": "The body is longer than the route takes."
  },
  "file_too_large": {
    "status": 413,
    "meaning": "The file is longer than is read or written at once; the message names the limit."
  },
  "unsupported_media_type": {
    "status": 415,
    "meaning": "A body must be application/json."
  },
  "upgrade_required": {
    "status": 426,
    "meaning": "The path is a WebSocket: ask for it with an upgrade to version 13."
  },
  "too_many_connections": {
    "status": 429,
    "meaning": "The sandbox, or its host, has as many connections open as it may."
  },
  "rate_limited": {
    "status": 429,
    "meaning": "Too many requests with this credential, or from this address without one, or more of something than one may do in a time. See Retry-After."
  },
  "sandbox_busy": {
    "status": 429,
    "meaning": "Too many file calls at once in this sandbox. See Retry-After."
  },
  "request_header_too_large": {
    "status": 431,
    "meaning": "The headers are too long."
  },
  "internal": {
    "status": 500,
    "meaning": "A fault in the service; the header x-request-id finds it in the log."
  },
  "port_refused": {
    "status": 502,
    "meaning": "Nothing listens on that port of the sandbox."
  },
  "insufficient_capacity": {
    "status": 503,
    "meaning": "No host has room for the machine; the message names the shortage. See Retry-After."
  },
  "host_unavailable": {
    "status": 503,
    "meaning": "The machine that runs sandboxes does not answer. See Retry-After."
  },
  "sandbox_unreachable": {
    "status": 503,
    "meaning": "The sandbox is awake by record, but its machine did not answer; a command may or may not have run."
  },
  "payment_provider_unavailable": {
    "status": 503,
    "meaning": "The payment provider did not answer, or refused; nothing was bought. See Retry-After."
  },
  "shutting_down": {
    "status": 503,
    "meaning": "This instance is stopping; try again."
  },
  "preview_link_required": {
    "status": 401,
    "meaning": "The preview opens with a link that is good for it, and none was brought."
  },
  "preview_link_invalid": {
    "status": 403,
    "meaning": "The preview link is not whole, or is for another preview."
  },
  "preview_not_found": {
    "status": 404,
    "meaning": "There is no such preview, or its sandbox is gone."
  },
  "preview_upload_stalled": {
    "status": 408,
    "meaning": "Nothing more of the request came for too long."
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
    "meaning": "The request is of a kind that previews do not pass on."
  },
  "preview_answer_broken": {
    "status": 502,
    "meaning": "The app behind the preview broke off, or answered what is no HTTP."
  },
  "preview_sandbox_asleep": {
    "status": 503,
    "meaning": "The sandbox behind the preview sleeps."
  },
  "preview_sandbox_starting": {
    "status": 503,
    "meaning": "The sandbox behind the preview is starting. See Retry-After."
  },
  "preview_sandbox_failed": {
    "status": 503,
    "meaning": "The sandbox behind the preview does not run, and was not woken; its page says which."
  },
  "preview_timed_out": {
    "status": 504,
    "meaning": "The app behind the preview did not answer in time."
  }
} as const;

export const EXEC_LIMITS = {
  "timeoutSeconds": {
    "default": 120,
    "min": 1,
    "max": 600
  },
  "outputBytes": 65536,
  "commandCharacters": 1048576
} as const;

export const FILE_LIMITS = {
  "writeBytes": 2097152,
  "readBytes": 8388608,
  "pathCharacters": 4096,
  "pathBytes": 4095,
  "depth": {
    "default": 3,
    "min": 1,
    "max": 5
  },
  "listEntries": 10000,
  "listTextBytes": 2097152,
  "bodyBytes": 16842760
} as const;

export const IDEMPOTENCY_KEY = {
  "maxCharacters": 255,
  "keptHours": 24
} as const;

export const METADATA_LIMITS = {
  "keys": 24,
  "keyCharacters": 128,
  "valueCharacters": 1024
} as const;

export const REQUESTS_PER_MINUTE = 600 as const;

export const MACHINE_SIZES = {
  "small": {
    "vcpu": 1,
    "memoryGb": 1,
    "diskGb": 10
  },
  "medium": {
    "vcpu": 2,
    "memoryGb": 4,
    "diskGb": 20
  },
  "large": {
    "vcpu": 4,
    "memoryGb": 8,
    "diskGb": 40
  },
  "xlarge": {
    "vcpu": 8,
    "memoryGb": 16,
    "diskGb": 80
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

export const SANDBOX_STATES = {
  "provisioning": {
    "meaning": "its machine is being made",
    "awake": false,
    "holdsMachine": true,
    "holdsDisk": true,
    "concurrent": true,
    "metered": false,
    "settled": false,
    "next": [
      "running",
      "ready",
      "failed",
      "destroying"
    ]
  },
  "running": {
    "meaning": "its machine answers; its repository is being cloned",
    "awake": true,
    "holdsMachine": true,
    "holdsDisk": true,
    "concurrent": true,
    "metered": true,
    "settled": true,
    "next": [
      "ready",
      "sleeping",
      "stopped",
      "failed",
      "destroying"
    ]
  },
  "ready": {
    "meaning": "its machine answers and its set-up is done",
    "awake": true,
    "holdsMachine": true,
    "holdsDisk": true,
    "concurrent": true,
    "metered": true,
    "settled": true,
    "next": [
      "sleeping",
      "stopped",
      "failed",
      "destroying"
    ]
  },
  "sleeping": {
    "meaning": "its memory and disk are being captured",
    "awake": false,
    "holdsMachine": true,
    "holdsDisk": true,
    "concurrent": true,
    "metered": false,
    "settled": false,
    "next": [
      "stopped",
      "running",
      "ready",
      "failed",
      "destroying"
    ]
  },
  "stopped": {
    "meaning": "it sleeps: memory and disk are kept for a wake, its machine is released",
    "awake": false,
    "holdsMachine": false,
    "holdsDisk": true,
    "concurrent": false,
    "metered": false,
    "settled": true,
    "next": [
      "waking",
      "failed",
      "destroying"
    ]
  },
  "waking": {
    "meaning": "its machine is being restored",
    "awake": false,
    "holdsMachine": true,
    "holdsDisk": true,
    "concurrent": true,
    "metered": false,
    "settled": false,
    "next": [
      "running",
      "ready",
      "stopped",
      "failed",
      "destroying"
    ]
  },
  "failed": {
    "meaning": "its machine could not be made, or was lost; statusReason says why, wakesFrom what a wake can start from",
    "awake": false,
    "holdsMachine": false,
    "holdsDisk": true,
    "concurrent": false,
    "metered": false,
    "settled": true,
    "next": [
      "waking",
      "running",
      "ready",
      "stopped",
      "destroying"
    ]
  },
  "destroying": {
    "meaning": "its machine, disk and snapshot are being deleted",
    "awake": false,
    "holdsMachine": true,
    "holdsDisk": true,
    "concurrent": false,
    "metered": false,
    "settled": false,
    "next": [
      "deleted"
    ]
  },
  "deleted": {
    "meaning": "its machine, disk and snapshot are gone for good",
    "awake": false,
    "holdsMachine": false,
    "holdsDisk": false,
    "concurrent": false,
    "metered": false,
    "settled": true,
    "next": []
  }
} as const;

export const SANDBOX_ACTION_RULES = {
  "exec": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "refuse",
    "stopped": "refuse",
    "waking": "refuse",
    "failed": "refuse",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "connect": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "refuse",
    "stopped": "refuse",
    "waking": "refuse",
    "failed": "refuse",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "ssh_access": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "do",
    "stopped": "do",
    "waking": "do",
    "failed": "do",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "files_read": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "refuse",
    "stopped": "refuse",
    "waking": "refuse",
    "failed": "refuse",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "files_write": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "refuse",
    "stopped": "refuse",
    "waking": "refuse",
    "failed": "refuse",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "sleep": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "done",
    "stopped": "done",
    "waking": "refuse",
    "failed": "refuse",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "wake": {
    "provisioning": "refuse",
    "running": "refuse",
    "ready": "refuse",
    "sleeping": "refuse",
    "stopped": "do",
    "waking": "done",
    "failed": "do",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "resize": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "refuse",
    "stopped": "do",
    "waking": "refuse",
    "failed": "do",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "renew": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "refuse",
    "stopped": "refuse",
    "waking": "refuse",
    "failed": "refuse",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "metrics_live": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "refuse",
    "stopped": "refuse",
    "waking": "refuse",
    "failed": "refuse",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "metrics_sample": {
    "provisioning": "refuse",
    "running": "do",
    "ready": "do",
    "sleeping": "refuse",
    "stopped": "refuse",
    "waking": "refuse",
    "failed": "refuse",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "preview_link": {
    "provisioning": "do",
    "running": "do",
    "ready": "do",
    "sleeping": "do",
    "stopped": "do",
    "waking": "do",
    "failed": "do",
    "destroying": "refuse",
    "deleted": "refuse"
  },
  "destroy": {
    "provisioning": "do",
    "running": "do",
    "ready": "do",
    "sleeping": "do",
    "stopped": "do",
    "waking": "do",
    "failed": "do",
    "destroying": "done",
    "deleted": "done"
  }
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
  "metrics_sample": "sandbox_state_conflict",
  "preview_link": "sandbox_state_conflict",
  "destroy": "sandbox_state_conflict"
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
    "query": [],
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
    "query": [],
    "body": null
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
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/CreateOrgRequest"
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
            "owner_link_created",
            "plan_changed",
            "checkout_started",
            "subscription_changed",
            "usage_guardrails_updated",
            "usage_cap_warning",
            "member_role_changed",
            "member_removed",
            "invitation_created",
            "invitation_sent",
            "invitation_revoked",
            "invitation_accepted",
            "api_key_created",
            "api_key_revoked",
            "agent_token_created",
            "agent_token_revoked",
            "project_created",
            "project_updated",
            "project_deleted",
            "sandbox_created",
            "sandbox_running",
            "sandbox_ready",
            "sandbox_failed",
            "sandbox_clone_started",
            "sandbox_clone_finished",
            "sandbox_clone_failed",
            "sandbox_exec",
            "sandbox_connected",
            "sandbox_file_written",
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
          "pattern": "^[^\\0\\p{Cs}]*$"
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
          "pattern": "^[^\\0\\p{Cs}]*$"
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
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/ExecInSandboxRequest"
      }
    }
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
    "query": [
      {
        "name": "path",
        "required": false,
        "schema": {
          "default": "",
          "type": "string",
          "minLength": 0,
          "maxLength": 4096,
          "pattern": "^[^\\0\\p{Cs}]*$"
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
    "query": [
      {
        "name": "path",
        "required": false,
        "schema": {
          "default": "",
          "type": "string",
          "minLength": 0,
          "maxLength": 4096,
          "pattern": "^[^\\0\\p{Cs}]*$"
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
    "query": [
      {
        "name": "path",
        "required": true,
        "schema": {
          "type": "string",
          "minLength": 1,
          "maxLength": 4096,
          "pattern": "^[^\\0\\p{Cs}]*$"
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
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/WriteFileRequest"
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
    "query": [],
    "body": {
      "required": true,
      "schema": {
        "$ref": "#/components/schemas/ResizeSandboxRequest"
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
    "description": "The coding agent that a sandbox is made for; needed also by callers that run one of their own."
  },
  "AgentTokenAccess": {
    "type": "string",
    "enum": [
      "read_only",
      "read_send"
    ],
    "description": "`read_only`: discovers sessions and reads replies. `read_send`: also creates and recovers sessions, sends messages, interrupts."
  },
  "CreateAgentTokenRequest": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\0\\p{Cs}]*$"
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
        "pattern": "^[^\\0\\p{Cs}]*$"
      },
      "expiresInDays": {
        "description": "Without a number it does not expire.",
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
        "description": "What it may do, within what its creator may do at the time. null or absent: unscoped. Empty: nothing.",
        "anyOf": [
          {
            "maxItems": 28,
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
  "CreateInvitationRequest": {
    "type": "object",
    "properties": {
      "email": {
        "type": "string",
        "maxLength": 254,
        "format": "email",
        "pattern": "^(?:[A-Za-z0-9_'+\\-]+\\.)*[A-Za-z0-9_'+\\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
        "description": "Compared in lower case."
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
        "pattern": "^[^\\0\\p{Cs}]*$"
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
        "description": "A TCP port of the sandbox; not that of the service's own daemon in it."
      },
      "audience": {
        "default": "team",
        "description": "`public` needs the permission `sandbox.preview.share` besides.",
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
        "pattern": "^[^\\0\\p{Cs}]*$"
      },
      "label": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\0\\p{Cs}]*$"
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
        "description": "Made up by the server when absent.",
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\0\\p{Cs}]*$"
      },
      "useCase": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[^\\0\\p{Cs}]*$",
        "description": "Free text with one known value: `external` means that the machines serve the operator's product users; only then may they be ephemeral."
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
            "description": "`owner/repo` on the git host of the service, or the full https URL of a repository."
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
            "pattern": "^(?!HEAD$|@$|[-./])(?!.*(?:\\.\\.|\\/\\.|\\/\\/|@\\{|\\.lock(?:\\/|$)))[^\\s~^:?*[\\\\\\p{Cc}\\p{Cs}]+(?<![./])$",
            "description": "A git branch."
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultIdleMinutes": {
        "description": "Minutes without use after which its `sleep_resume` sandboxes go to sleep by themselves; 0: never; null: 30.",
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
      "wakeOnUse": {
        "description": "Whether a command, file call, preview or connection (a terminal, a tunnel to a port) of a stopped sandbox wakes it.",
        "type": "boolean"
      },
      "metadata": {
        "description": "Replaced whole. Flat labels; values are strings, numbers or booleans; at most 24 keys.",
        "type": "object",
        "propertyNames": {
          "type": "string",
          "minLength": 1,
          "maxLength": 128,
          "pattern": "^[^\\0\\p{Cs}]*$"
        },
        "additionalProperties": {
          "anyOf": [
            {
              "type": "string",
              "minLength": 0,
              "maxLength": 1024,
              "pattern": "^[^\\0\\p{Cs}]*$"
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
        "description": "Encrypted at rest, never answered; null removes them.",
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
        "description": "Not settable here: org admins set it by its own route. null is taken for absent.",
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
        "description": "A project of this org."
      },
      "name": {
        "description": "Made up by the server when absent.",
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\0\\p{Cs}]*$"
      },
      "repository": {
        "description": "Cloned into `/code`: `owner/repo` on the git host of the service, or the full https URL of a repository. Absent: the project's default; null: none.",
        "anyOf": [
          {
            "type": "string",
            "description": "`owner/repo` on the git host of the service, or the full https URL of a repository."
          },
          {
            "type": "null"
          }
        ]
      },
      "branch": {
        "description": "Absent: the project's default, where the repository is the project's too; null, or neither: the one that the repository says.",
        "anyOf": [
          {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^(?!HEAD$|@$|[-./])(?!.*(?:\\.\\.|\\/\\.|\\/\\/|@\\{|\\.lock(?:\\/|$)))[^\\s~^:?*[\\\\\\p{Cc}\\p{Cs}]+(?<![./])$",
            "description": "A git branch."
          },
          {
            "type": "null"
          }
        ]
      },
      "profile": {
        "description": "The project's default when absent, or what follows from `machineSize`.",
        "$ref": "#/components/schemas/Profile"
      },
      "machineSize": {
        "description": "Instead of the machine tier that the profile starts with.",
        "$ref": "#/components/schemas/MachineSize"
      },
      "sshPublicKey": {
        "writeOnly": true,
        "description": "One OpenSSH public key line: `<key_type> <key_material> <comment>`, of the types ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, sk-ssh-ed25519@openssh.com, sk-ecdsa-sha2-nistp256@openssh.com. Its owner may sign in as `berth` over a tunnel to port 22.",
        "type": "string",
        "maxLength": 16384
      },
      "endUserId": {
        "type": "string",
        "minLength": 1,
        "maxLength": 512,
        "pattern": "^[^\\0\\p{Cs}]*$",
        "description": "Whom of the operator's own users it is for. Opaque: never parsed, not assumed unique; their usage is counted by it."
      },
      "metadata": {
        "type": "object",
        "propertyNames": {
          "type": "string",
          "minLength": 1,
          "maxLength": 128,
          "pattern": "^[^\\0\\p{Cs}]*$"
        },
        "additionalProperties": {
          "anyOf": [
            {
              "type": "string",
              "minLength": 0,
              "maxLength": 1024,
              "pattern": "^[^\\0\\p{Cs}]*$"
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
        "description": "Flat labels; values are strings, numbers or booleans; at most 24 keys."
      },
      "persistencePolicy": {
        "description": "The project's default when absent, or `sleep_resume`.",
        "$ref": "#/components/schemas/PersistencePolicy"
      },
      "mode": {
        "description": "`ephemeral`: it ends with its time to live. Only in projects whose `useCase` is `external`; needs `ttlSeconds`.",
        "type": "string",
        "enum": [
          "ephemeral"
        ]
      },
      "ttlSeconds": {
        "description": "Time to live from the create on. Required with `mode`, refused without it; the plan's longest session may be shorter.",
        "type": "integer",
        "minimum": 1,
        "maximum": 86400
      }
    },
    "required": [
      "agent",
      "projectId"
    ],
    "additionalProperties": false
  },
  "ExecInSandboxRequest": {
    "type": "object",
    "properties": {
      "command": {
        "type": "string",
        "minLength": 1,
        "maxLength": 1048576,
        "pattern": "^[^\\0\\p{Cs}]*$",
        "description": "Given to /bin/sh in /code."
      },
      "timeoutSeconds": {
        "default": 120,
        "description": "How long it may run; it is ended after that.",
        "type": "integer",
        "minimum": 1,
        "maximum": 600
      }
    },
    "required": [
      "command"
    ],
    "additionalProperties": false
  },
  "MachineSize": {
    "type": "string",
    "enum": [
      "small",
      "medium",
      "large",
      "xlarge"
    ],
    "description": "A machine tier: vCPUs, memory and disk."
  },
  "Permission": {
    "type": "string",
    "enum": [
      "org.read",
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
      "sandbox.connect",
      "agent_session.read",
      "agent_session.send",
      "agent_session.approve"
    ],
    "description": "What one may do. Further ones will come."
  },
  "PersistencePolicy": {
    "type": "string",
    "enum": [
      "always_on",
      "sleep_resume"
    ],
    "description": "`always_on` bills continuously; `sleep_resume` bills while awake, sleeps when idle, and keeps the disk."
  },
  "PreviewAudience": {
    "type": "string",
    "enum": [
      "team",
      "public"
    ],
    "description": "`team`: signed-in members of the org of the sandbox. `public`: whoever has the URL."
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
    "description": "What a sandbox is for; says which machine tier it starts with. `auto` follows what it uses."
  },
  "RepoCredentials": {
    "type": "object",
    "properties": {
      "username": {
        "type": "string",
        "minLength": 1,
        "maxLength": 8192,
        "pattern": "^[^:\\p{Cc}\\p{Cs}]*$"
      },
      "token": {
        "type": "string",
        "minLength": 1,
        "maxLength": 8192,
        "pattern": "^[^\\p{Cc}\\p{Cs}]*$"
      }
    },
    "required": [
      "token"
    ],
    "additionalProperties": false,
    "writeOnly": true,
    "description": "A token, and a user name where the git host wants one. Encrypted at rest, never answered."
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
        "description": "A disk only grows.",
        "type": "integer",
        "minimum": 1,
        "maximum": 1048576
      }
    },
    "additionalProperties": false,
    "minProperties": 1,
    "description": "What is missing stays as it is. At least one of the three is needed."
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
    "description": "Role of a member of an org, from most to least."
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
  "UpdateProjectRequest": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": "^[^\\0\\p{Cs}]*$"
      },
      "useCase": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[^\\0\\p{Cs}]*$",
        "description": "Free text with one known value: `external` means that the machines serve the operator's product users; only then may they be ephemeral."
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
            "description": "`owner/repo` on the git host of the service, or the full https URL of a repository."
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
            "pattern": "^(?!HEAD$|@$|[-./])(?!.*(?:\\.\\.|\\/\\.|\\/\\/|@\\{|\\.lock(?:\\/|$)))[^\\s~^:?*[\\\\\\p{Cc}\\p{Cs}]+(?<![./])$",
            "description": "A git branch."
          },
          {
            "type": "null"
          }
        ]
      },
      "defaultIdleMinutes": {
        "description": "Minutes without use after which its `sleep_resume` sandboxes go to sleep by themselves; 0: never; null: 30.",
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
      "wakeOnUse": {
        "description": "Whether a command, file call, preview or connection (a terminal, a tunnel to a port) of a stopped sandbox wakes it.",
        "type": "boolean"
      },
      "metadata": {
        "description": "Replaced whole. Flat labels; values are strings, numbers or booleans; at most 24 keys.",
        "type": "object",
        "propertyNames": {
          "type": "string",
          "minLength": 1,
          "maxLength": 128,
          "pattern": "^[^\\0\\p{Cs}]*$"
        },
        "additionalProperties": {
          "anyOf": [
            {
              "type": "string",
              "minLength": 0,
              "maxLength": 1024,
              "pattern": "^[^\\0\\p{Cs}]*$"
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
        "description": "Encrypted at rest, never answered; null removes them.",
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
        "description": "Not settable here: org admins set it by its own route. null is taken for absent.",
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
    "description": "An absent field stays as it is. At least one of the two is needed."
  },
  "WriteFileRequest": {
    "type": "object",
    "properties": {
      "path": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\0\\p{Cs}]*$",
        "description": "Relative paths are below /code. `.` and `..` are worked out in the text of the path, before any link is followed. At most 4095 bytes in all."
      },
      "content": {
        "type": "string",
        "description": "At most 2097152 bytes of file. With `base64`: the standard alphabet with padding, without line breaks. Without lone surrogates."
      },
      "encoding": {
        "default": "utf8",
        "description": "What `content` is.",
        "type": "string",
        "enum": [
          "utf8",
          "base64"
        ]
      }
    },
    "required": [
      "path",
      "content"
    ],
    "additionalProperties": false
  }
} as const;

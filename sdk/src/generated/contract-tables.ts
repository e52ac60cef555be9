// Written by npm run sdk:generate from contract/. Do not edit.

export const SANDBOX_STATES = {
  "provisioning": {
    "meaning": "its VM is being created",
    "awake": false,
    "reservesCompute": true,
    "reservesDisk": true,
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
    "meaning": "its VM is up; its repository is being cloned",
    "awake": true,
    "reservesCompute": true,
    "reservesDisk": true,
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
    "meaning": "its VM is up and its set-up is complete",
    "awake": true,
    "reservesCompute": true,
    "reservesDisk": true,
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
    "meaning": "its memory and disk are being saved",
    "awake": false,
    "reservesCompute": true,
    "reservesDisk": true,
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
    "meaning": "it is asleep: memory and disk are kept for a wake, its VM is released",
    "awake": false,
    "reservesCompute": false,
    "reservesDisk": true,
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
    "meaning": "its VM is being restored",
    "awake": false,
    "reservesCompute": true,
    "reservesDisk": true,
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
    "meaning": "its VM could not be created, or was lost",
    "awake": false,
    "reservesCompute": false,
    "reservesDisk": true,
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
    "meaning": "its VM, disk and snapshot are being deleted",
    "awake": false,
    "reservesCompute": true,
    "reservesDisk": true,
    "concurrent": false,
    "metered": false,
    "settled": false,
    "next": [
      "deleted"
    ]
  },
  "deleted": {
    "meaning": "its VM, disk and snapshot are permanently deleted",
    "awake": false,
    "reservesCompute": false,
    "reservesDisk": false,
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
  "metrics_history": {
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
  "file_link": {
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
  "agent_session": {
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

export const AGENT_LABELS = {
  "agent_one": "Codex",
  "agent_two": "Claude Code"
} as const;

export const PERMISSIONS = [
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
] as const;

export const ADMINISTRATION = [
  "org.update",
  "org.members.manage",
  "org.owners.manage",
  "api_keys.manage",
  "billing.manage",
  "usage_guardrails.manage",
  "project.delete",
  "agent_credentials.manage"
] as const;

export const ROLE_PERMISSIONS = {
  "owner": [
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
  "admin": [
    "org.read",
    "org.update",
    "org.members.manage",
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
  "member": [
    "org.read",
    "activity.read",
    "billing.read",
    "project.read",
    "project.create",
    "project.update",
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
    "agent_session.approve"
  ],
  "operator": [
    "org.read",
    "activity.read",
    "project.read",
    "project.create",
    "sandbox.read",
    "sandbox.create",
    "sandbox.exec",
    "sandbox.stop",
    "sandbox.wake",
    "sandbox.resize",
    "sandbox.metrics",
    "sandbox.destroy",
    "sandbox.preview",
    "sandbox.files.read",
    "sandbox.files.write",
    "sandbox.variables.write",
    "sandbox.connect",
    "agent_session.read",
    "agent_session.send",
    "agent_session.approve"
  ],
  "viewer": [
    "org.read",
    "activity.read",
    "project.read",
    "sandbox.read",
    "sandbox.preview",
    "sandbox.files.read",
    "agent_session.read"
  ]
} as const;

export const WEBSOCKET_PATHS = {
  "terminal": "/v1/sandboxes/{sandboxId}/terminal",
  "tunnel": "/v1/sandboxes/{sandboxId}/tunnel",
  "process": "/v1/sandboxes/{sandboxId}/processes/{processId}/follow"
} as const;

export const WEBSOCKET_SUBPROTOCOL = "berth.v1" as const;

export const BEARER_SUBPROTOCOL = "berth.bearer." as const;

export const OUTCOME_SUBPROTOCOL = "berth.outcome" as const;

export const WEBSOCKET_CLOSE = {
  "ended": 1000,
  "goingAway": 1001,
  "notUnderstood": 1003,
  "broken": 1011
} as const;

export const COMMAND_OUTPUT = {
  "stdout": 1,
  "stderr": 2
} as const;

export const PREVIEW_HEADERS = {
  "token": "x-berth-preview-token",
  "host": "x-berth-preview-host"
} as const;

export const TERMINAL_SIGNALS = [
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
] as const;

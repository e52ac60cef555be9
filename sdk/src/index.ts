// Exports of `@berth/sdk`.
export {
  Activity,
  type ActivityEntry,
  type ActivityPage,
  type ActivityQuery,
  type ExportedActivityEntry,
  type FollowQuery,
  type NewActivity,
} from './activity.ts';
export {
  AgentSession,
  type AgentAnswer,
  type AgentOutputPage,
  type AgentSessionData,
  type AgentTurnsPage,
  type MessageOptions,
  type RefreshOptions,
} from './agent-session.ts';
export {
  AgentTurn,
  type AgentDecision,
  type AgentPendingInput,
  type AgentReply,
  type AgentTurnData,
  type FollowOptions,
} from './agent-turn.ts';
export { Agents, SandboxAgents, type AgentSessionsPage, type AgentSessionsQuery } from './agents.ts';
export { ApiKeys, type ApiKey, type ApiKeySpec } from './api-keys.ts';
export { Berth, type BerthOptions, type Identity, type Org } from './berth.ts';
export {
  CommandFailed,
  CommandResult,
  type CommandOptions,
  type ExecOptions,
  type RunningCommand,
} from './processes/command.ts';
export type { ContinueOptions, ResumableOptions, UploadedPath, UploadSource } from './transfers/resumed-upload.ts';
export { BerthError, type BerthErrorFields, type LocalErrorCode } from './transport/errors.ts';
export {
  SandboxFiles,
  type ChangedMode,
  type ChangedPath,
  type FileContent,
  type DownloadOptions,
  type FileData,
  type FileDownload,
  type FileEntry,
  type FileLink,
  type FileLinkOptions,
  type FileStat,
  type FilesSnapshot,
  type FolderEvent,
  type FolderListing,
  type FolderReset,
  type MovedFile,
  type WatchOptions,
  type WriteOptions,
  type WrittenFile,
} from './files.ts';
export { Hosts, type Host, type HostDetail, type HostSandbox, type HostsPage, type HostsQuery } from './hosts.ts';
export {
  ADMINISTRATION,
  AGENT_LABELS,
  MACHINE_SIZES,
  PERMISSIONS,
  ROLE_PERMISSIONS,
  SANDBOX_ACTION_RULES,
  SANDBOX_STATES,
} from './generated/contract-tables.ts';
export { IDLE_MINUTES } from './generated/limits.ts';
export { PRIVATE_KEY, sshPublicKeyFault } from './generated/ssh-key-line.ts';
export type {
  ErrorCode,
  Profile,
  MachineSize,
  Agent,
  PersistencePolicy,
  Permission,
  Role,
} from './generated/raw/index.ts';
export type * as api from './generated/raw/types.gen.ts';
export { RawClient } from './generated/raw/index.ts';
export {
  SandboxPreviews,
  type Preview,
  type PreviewAccess,
  type PreviewSpec,
  type PreviewUrlOptions,
} from './previews.ts';
export { SandboxVariables, type SandboxVariable } from './variables.ts';
export {
  SandboxProcess,
  type FollowProcessOptions,
  type ProcessData,
  type ProcessEnd,
  type ProcessOutput,
  type ProcessOutputOptions,
} from './processes/process.ts';
export { SandboxProcesses, type SpawnOptions } from './processes/processes.ts';
export { Projects, type OrgCallOptions, type Project, type ProjectChanges, type ProjectSpec } from './projects.ts';
export {
  Sandbox,
  type Awaited,
  type LiveMetrics,
  type MetricsHistory,
  type SandboxDiagnostics,
  type MetricsSample,
  type SandboxData,
  type SandboxEgress,
  type SandboxStatus,
  type Size,
  type TransitionOptions,
} from './sandbox.ts';
export {
  Sandboxes,
  type AllOptions,
  type CreateOptions,
  type KeyedSandboxSpec,
  type ListOptions,
  type SandboxCounts,
  type SandboxFilter,
  type SandboxSpec,
} from './sandboxes.ts';
export {
  Usage,
  type EndUserUsage,
  type DayUsage,
  type EndUsersUsage,
  type OrgUsage,
  type Subscription,
  type UsageGuardrails,
  type UsageGuardrailsChanges,
} from './usage.ts';
export type { Exit, SandboxCommand, SandboxTerminal, Signal, TerminalSize } from './streams/program.ts';
export { SandboxStreams, type StreamOptions, type TerminalOptions } from './sandbox-streams.ts';
export type { SandboxTunnel } from './streams/tunnel.ts';
export type { WaitForPortOptions } from './processes/wait-for-port.ts';
export type { WebSocketConstructor } from './streams/web-socket.ts';
export type { CallOptions, Credential } from './transport/transport.ts';

// Kinds of requests in a fuzzer run.
import { agentCredentials } from './agents/credentials.ts';
import { agentSessions } from './agents/sessions.ts';
import { fileRequests } from './files/requests.ts';
import { fileRoundTrips } from './files/round-trips.ts';
import { guestCommands } from './files/guest-commands.ts';
import type { FuzzKind } from './core/kind.ts';
import { previewBytes } from './previews/bytes.ts';
import { previewLinks } from './previews/links.ts';
import { previewRequests } from './previews/requests.ts';

export const FUZZ_KINDS: readonly FuzzKind[] = [
  fileRequests,
  fileRoundTrips,
  guestCommands,
  previewRequests,
  previewBytes,
  previewLinks,
  agentSessions,
  agentCredentials,
];

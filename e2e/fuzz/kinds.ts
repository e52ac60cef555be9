// The kinds of requests that a run of the fuzzer is made of.
import { fileRequests } from './file-requests.ts';
import { fileRoundTrips } from './file-round-trips.ts';
import { guestCommands } from './guest-commands.ts';
import type { FuzzKind } from './kind.ts';
import { previewBytes } from './preview-bytes.ts';
import { previewLinks } from './preview-links.ts';
import { previewRequests } from './preview-requests.ts';

export const FUZZ_KINDS: readonly FuzzKind[] = [
  fileRequests,
  fileRoundTrips,
  guestCommands,
  previewRequests,
  previewBytes,
  previewLinks,
];

// Paths of an agent session in the guest.
import { join } from 'node:path';

export interface SessionPaths {
  /** Folder of the session's files. */
  folder: string;
  socket: string;
  cgroup: string | null;
  pingMs: number;
}

/** Paths of a session's files and socket. */
export function sessionPaths(
  folders: { sessions: string; sockets: string },
  id: string,
): Omit<SessionPaths, 'cgroup' | 'pingMs'> {
  return { folder: join(folders.sessions, id), socket: join(folders.sockets, `${id}.sock`) };
}

/**
 * Connections that the kernel keeps for a server until the process accepts them, bounded by
 * `net.core.somaxconn`. Node's default is 511: with 2,000 callers at once TCP callers above it are
 * reset, and those of a Unix socket are refused with EAGAIN.
 */
export const LISTEN_BACKLOG = 4_096;

// The guest daemon, from within its sandbox.

/** Shell text for its process id, in a VM and on the driver without VMs. */
export const GUEST_DAEMON = `$(pgrep -o -f '^[^ ]*node .*guestd.mjs')`;

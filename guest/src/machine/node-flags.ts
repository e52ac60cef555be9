/** Node flags of the guest daemon; the image's service file explains them. */
export const GUEST_NODE_FLAGS: readonly string[] = ['--jitless', '--single-threaded', '--no-flush-bytecode'];

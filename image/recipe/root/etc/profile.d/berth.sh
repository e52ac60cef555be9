# The PATH that commands, terminals, processes, agents and ssh have, after /etc/profile has set another.
PATH="$HOME/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export PATH

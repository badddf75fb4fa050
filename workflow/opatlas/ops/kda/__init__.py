"""kda: Kimi delta attention: convolution and recurrence of one layer, gated by channel."""

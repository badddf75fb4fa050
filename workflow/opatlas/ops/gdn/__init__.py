"""gdn: gated delta-rule linear attention: convolution and recurrence of one layer."""
